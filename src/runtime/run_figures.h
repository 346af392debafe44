#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/units.h"
#include "memory/tier.h"

// What is counted of a run: where it arises a record is filled in, and as it is it goes through the session's shared
// memory into the report. This needs no library but libc, as session.h.
//
// Records have no gaps, no pointers and no values that some bits are none of (a bool): what another process has left
// there can be read whatever it is.
namespace spillway {

// A figure of a record by its name in the report; its type is its unit.
template <class Record, class Value>
struct Figure {
  const char* name;
  Value Record::* value;
};
// One that the report tells in its own way, or not at all.
template <class Record, class Value>
struct Untold {
  Value Record::* value;
};

// Whether a record's figures() are all that it has, each once.
template <class Record>
constexpr bool has_all_figures() {
  constexpr auto is_same = []<class A, class B>(A a, B b) {
    if constexpr (std::is_same_v<A, B>) return a == b;
    return false;
  };
  constexpr auto all = [=](const auto&... figure) {
    const auto times = [&](const auto& one) { return (is_same(one.value, figure.value) + ...); };
    return (sizeof(std::declval<Record>().*figure.value) + ...) == sizeof(Record) && ((times(figure) == 1) && ...);
  };
  return std::has_unique_object_representations_v<Record> && std::apply(all, Record::figures());
}

// Cut where it does not fit.
template <std::size_t kBytes>
class FixedText {
 public:
  constexpr FixedText() = default;
  constexpr FixedText(const std::convertible_to<std::string_view> auto& text) {
    std::string_view(text).copy(text_.data(), kBytes);
  }
  constexpr std::string_view view() const {
    const std::string_view all(text_.data(), kBytes);
    return all.substr(0, all.find('\0'));
  }

 private:
  std::array<char, kBytes> text_{};
};

// Of the memory, since the first tensor was made.
struct MemoryFigures {
  std::uint64_t faults = 0;         // of blocks that had bytes
  std::uint64_t first_touches = 0;  // of blocks that had none
  PerLink<Bytes> moved{};
  Bytes dropped_clean{};            // left for the SSD without being written, since it had the same bytes
  std::uint64_t unseen_writes = 0;  // blocks that should have been dropped so, and had changed
  Bytes written{};                  // to the SSD, also by moves that were given up
  Nanos stall{};                    // in which at least one thread waited
  PerTier<Bytes> held{}, peak{};

  static constexpr auto figures() {
    using Self = MemoryFigures;
    return std::tuple(Figure{"faults", &Self::faults}, Figure{"first_touches", &Self::first_touches},
                      Figure{"moved_bytes", &Self::moved}, Figure{"clean_drops_bytes", &Self::dropped_clean},
                      Figure{"unseen_writes", &Self::unseen_writes}, Figure{"ssd_written_bytes", &Self::written},
                      Figure{"stall_seconds", &Self::stall}, Untold{&Self::held}, Untold{&Self::peak});
  }
};
static_assert(has_all_figures<MemoryFigures>());

// Of a GPU, besides.
struct GpuFigures {
  std::uint64_t held_launches = 0;     // that waited for what they touch
  std::uint64_t blind_launches = 0;    // may have touched more than was seen, outside of operators
  std::uint64_t mappings = 0;          // blocks mapped or unmapped
  Nanos mapping{};                     // that this took
  Bytes pinned_peak{};                 // host memory that is copied from and to
  std::uint64_t checked_launches = 0;  // of a strict run

  static constexpr auto figures() {
    using Self = GpuFigures;
    return std::tuple(Figure{"held_launches", &Self::held_launches}, Figure{"blind_launches", &Self::blind_launches},
                      Figure{"mappings", &Self::mappings}, Figure{"mapping_seconds", &Self::mapping},
                      Figure{"pinned_peak_bytes", &Self::pinned_peak},
                      Figure{"checked_launches", &Self::checked_launches});
  }
};
static_assert(has_all_figures<GpuFigures>());

// Whether anything had to leave the device.
inline bool has_moved(const MemoryFigures& memory) {
  return memory.moved(Tier::device, Tier::host) > Bytes{} || memory.moved(Tier::device, Tier::ssd) > Bytes{};
}

// Of an iteration of the script.
struct IterationFigures {
  Nanos duration{};
  std::uint64_t faults = 0;
  Bytes in{}, out{};                               // moved to the device and from it
  Nanos waited{};                                  // in which some thread waited for memory
  std::uint64_t kernels = 0, planned_kernels = 0;  // that used managed memory; of these, a plan's
  std::uint64_t planned = 0;                       // 1: it followed a plan

  static constexpr auto figures() {
    using Self = IterationFigures;
    return std::tuple(Figure{"seconds", &Self::duration}, Figure{"faults", &Self::faults},
                      Figure{"moved_in_bytes", &Self::in}, Figure{"moved_out_bytes", &Self::out},
                      Figure{"waited_seconds", &Self::waited}, Figure{"operators", &Self::kernels},
                      Figure{"planned_operators", &Self::planned_kernels}, Untold{&Self::planned});
  }
};
static_assert(has_all_figures<IterationFigures>());

// Why a plan is not followed any more, though no other has taken its place.
enum class PlanEnd : std::uint64_t {
  none,             // It is.
  slower,           // Iterations waited longer than without it.
  not_needed,       // Times or rates have changed, and now it is as good to go on without.
  other_iteration,  // The script does something else, for which there is no plan.
};

// Of a plan, and of how the run has followed it.
struct PlanFigures {
  FixedText<32> policy{};
  std::uint64_t optimizer_steps = 0;      // in the iteration that it is for
  Nanos predicted{};                      // a steady iteration
  Bytes predicted_in{}, predicted_out{};  // that it moves to the device and from it
  // What must move in each iteration, the time that this takes at the links' rates, all at once, and how long kernels
  // must wait where they use much in a short time.
  Nanos link_bound{}, least_wait{};
  Bytes least_in{}, least_out{};
  Nanos planning{};                        // that it took to make it
  std::uint64_t given = 0;                 // 1: it was made before, as the user wanted
  std::uint64_t adopted_at_iteration = 0;  // the script's, counted from 1
  std::uint64_t dropped_at_iteration = 0;  // from which on it was not followed; 0: it was
  PlanEnd end = PlanEnd::none;

  static constexpr auto figures() {
    using Self = PlanFigures;
    return std::tuple(Figure{"policy", &Self::policy}, Figure{"optimizer_steps", &Self::optimizer_steps},
                      Figure{"predicted_seconds", &Self::predicted}, Figure{"predicted_in_bytes", &Self::predicted_in},
                      Figure{"predicted_out_bytes", &Self::predicted_out},
                      Figure{"link_bound_seconds", &Self::link_bound}, Figure{"least_wait_seconds", &Self::least_wait},
                      Figure{"least_in_bytes", &Self::least_in}, Figure{"least_out_bytes", &Self::least_out},
                      Figure{"planning_seconds", &Self::planning},
                      Figure{"followed_since_iteration", &Self::adopted_at_iteration}, Untold{&Self::given},
                      Untold{&Self::dropped_at_iteration}, Figure{"given_up_because", &Self::end});
  }
};
static_assert(has_all_figures<PlanFigures>());

// Of the tensors that play the same part in each iteration.
struct CostFigures {
  FixedText<64> name{};   // in the recorded iteration; empty: it has no place there
  FixedText<64> maker{};  // the kernel that makes it; empty: none does
  Bytes bytes{};          // of the largest one
  Bytes moved{};          // of all, in the whole run, from any tier to any other
  Bytes waited_for{};     // of these, to the device when somebody waited for them already

  static constexpr auto figures() {
    using Self = CostFigures;
    return std::tuple(Figure{"name", &Self::name}, Figure{"made_by", &Self::maker}, Figure{"bytes", &Self::bytes},
                      Figure{"moved_bytes", &Self::moved}, Figure{"waited_for_bytes", &Self::waited_for});
  }
};
static_assert(has_all_figures<CostFigures>());

// An operator that runs, and that uses more than the device's memory. No name: none does.
struct OversizedOperator {
  FixedText<88> name{};
  Bytes used{};
};

// Why a run whose policy plans has followed no plan.
enum class NoPlan : std::uint64_t {
  ended,         // The script has, before anybody could say more.
  not_measured,  // The machine could not be.
  failed,        // Planning has; the detail says how.
  no_optimizer,  // No step of one ended: iterations are told apart by them.
  no_iteration,  // None was found; the detail says why.
  not_followed,  // One was made, and the script ended before it was followed.
  not_needed,    // To go on without one was predicted to be as good.
  not_made,      // The script ended before one was.
};
struct WhyNoPlan {
  NoPlan reason = NoPlan::ended;
  FixedText<4096> detail{};
};

}  // namespace spillway
