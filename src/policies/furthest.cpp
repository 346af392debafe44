// What is needed furthest in the future leaves (Belady, "A study of replacement algorithms for a virtual-storage
// computer", 1966), as if moves took no time, and comes back as early as there is room for it. So the choice knows no
// rates but for what a write costs beside a read, and it is left to the executor to keep the links at work. Which tier
// takes what, the links' loads decide.

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "policies/below.h"
#include "policies/circle.h"
#include "policies/copies.h"
#include "policies/policies.h"
#include "policies/pressure.h"

namespace spillway {
namespace {

// What is away at a kernel depends on what was chosen an iteration earlier; the choice of a few iterations on end
// mostly repeats itself.
constexpr std::uint64_t kMostIterations = 6;

// Kernels are counted through all iterations.
struct Open {
  std::uint64_t until;  // the tensor's next use
  std::size_t period;
  friend auto operator<=>(const Open&, const Open&) = default;
};

class FurthestFirst {
 public:
  explicit FurthestFirst(const Problem& problem)
      : problem_(problem),
        circle_(problem),
        excess_(circle_.excess()),
        slots_(slots_of(problem.trace)),
        starts_(circle_.kernels() + 1),
        beginning_(circle_.kernels()),
        returning_(std::size_t{circle_.kernels()} * 2) {
    const MachineModel& machine = problem.machine;
    const auto nanos = [](BytesPerSecond link, BytesPerSecond drives) {
      return 1e9 / static_cast<double>(std::min(link, drives).value);
    };
    clean_cost_ = nanos(machine.link.to_device, machine.ssd_read());
    cost_ = clean_cost_ + nanos(machine.link.from_device, machine.ssd_write());
    std::partial_sum(slots_.begin(), slots_.end(), starts_.begin() + 1);
    for (std::size_t index = 0; index < circle_.periods(); ++index)
      if (circle_.plannable(index) && kernels_away(index) > 0)
        beginning_[(circle_.period(index).after.value + 1) % circle_.kernels()].push_back(index);
  }

  void choose() {
    for (std::uint32_t kernel = 0; kernel < circle_.kernels(); ++kernel)  // away when the first iteration begins
      for (const std::size_t index : beginning_[kernel])
        if (const std::uint64_t until = kernel + kernels_away(index); until > circle_.kernels())
          open_[0].push({until - circle_.kernels(), index});
    for (std::uint64_t iteration = 0; iteration < kMostIterations; ++iteration) {
      const std::vector<std::size_t> before = std::exchange(chosen_, {});
      Copies copies(problem_.trace, problem_.lifetimes);
      for (const std::size_t index : before)
        if (circle_.period(index).wraps) copies.plan(index);
      choose_in(iteration, copies);
      std::ranges::sort(chosen_);
      if (chosen_ == before) return;
    }
    // One that is open at the end of an iteration may be chosen there and, begun anew, in the next one.
    chosen_.erase(std::ranges::unique(chosen_).begin(), chosen_.end());
  }

  Plan plan() const {
    Pressure excess(excess_, slots_);
    Below below(problem_, circle_, slots_);
    Copies copies(problem_.trace, problem_.lifetimes);
    std::vector<std::size_t> in_turn = chosen_;  // as they will leave: so neither way down is late for long
    std::ranges::stable_sort(in_turn, {}, [&](std::size_t index) { return circle_.period(index).after; });
    std::vector<Absence> absences;
    for (const std::size_t index : in_turn) {
      auto window = below.place(index, &copies, true);
      if (!window) window = late(index, below, copies);
      if (!window) continue;
      below.book(index, *window);
      window->tier() == Tier::host ? copies.plan_elsewhere(index) : static_cast<void>(copies.plan(index));
      const std::uint32_t returns = circle_.length(index) - 1;
      absences.push_back({.period = index, .tier = window->tier(), .left = 0, .returns = returns});
      circle_.add(excess, circle_.stretch(index, 1, returns), -static_cast<std::int64_t>(circle_.bytes(index).value));
    }
    const auto order = circle_.prefetch_eagerly(absences, excess);
    return circle_.plan(absences, order, &copies);
  }

 private:
  // Where there is room but no time: kernels will wait.
  static std::optional<Below::Window> late(std::size_t index, const Below& below, const Copies& copies) {
    if (below.has_room(Tier::ssd, index)) return Below::Window{.lane = Traffic::Lane::ssd};
    if (copies.is_written_anyway(index) || !below.has_room(Tier::host, index)) return std::nullopt;
    return Below::Window{.lane = Traffic::Lane::host};
  }
  // The kernel before the one that needs it is left for its way back.
  std::uint32_t kernels_away(std::size_t index) const { return circle_.length(index) - 2; }
  double time(std::uint64_t kernel) const {
    const std::uint64_t iteration = kernel / circle_.kernels();
    return static_cast<double>(iteration * starts_.back() + starts_[kernel % circle_.kernels()]);
  }

  void choose_in(std::uint64_t iteration, Copies& copies) {
    for (std::uint32_t kernel = 0; kernel < circle_.kernels(); ++kernel) {
      const std::uint64_t now = circle_.kernels() * iteration + kernel;
      away_ -= std::exchange(returning_[now % returning_.size()], 0);
      for (const std::size_t index : beginning_[kernel])
        open_[copies.is_written_anyway(index)].push({now + kernels_away(index), index});
      while (away_ < excess_[kernel]) {
        const auto next = furthest(now);
        if (!next) break;
        const auto size = static_cast<std::int64_t>(circle_.bytes(next->period).value);
        away_ += size;
        returning_[next->until % returning_.size()] += size;
        chosen_.push_back(next->period);
        copies.plan(next->period);
      }
    }
  }

  // Of what is there and could be away, what is needed last for what its way costs.
  std::optional<Open> furthest(std::uint64_t now) {
    std::array<double, 2> worth{};
    for (const std::size_t clean : {0u, 1u}) {
      auto& open = open_[clean];
      if (!open.empty() && open.top().until <= now) open = {};  // All are over.
      if (!open.empty()) worth[clean] = (time(open.top().until) - time(now)) / (clean ? clean_cost_ : cost_);
    }
    auto& open = open_[open_[0].empty() || worth[1] > worth[0]];
    if (open.empty()) return std::nullopt;
    const Open next = open.top();
    open.pop();
    return next;
  }

  const Problem& problem_;
  Circle circle_;
  std::vector<std::int64_t> excess_;                 // by kernel: bytes alive over what the device holds
  double cost_, clean_cost_;                         // nanoseconds a byte, both ways and back only
  std::vector<std::uint64_t> slots_;                 // nanoseconds of each kernel with the gap before it
  std::vector<std::uint64_t> starts_;                // of kernels, in nanoseconds; the iteration's end at the end
  std::vector<std::vector<std::size_t>> beginning_;  // periods, by kernel
  std::array<std::priority_queue<Open>, 2> open_;    // periods that could begin now; the second: without being written
  std::vector<std::int64_t> returning_;              // bytes, by kernel modulo two iterations
  std::int64_t away_ = 0;
  std::vector<std::size_t> chosen_;  // in the last iteration
};

}  // namespace

Plan plan_furthest(const Problem& problem) {
  FurthestFirst planner(problem);
  planner.choose();
  return planner.plan();
}

}  // namespace spillway
