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
  std::uint64_t until;  // it can be away before this kernel
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
    in_cost_ = nanos(machine.link.to_device, machine.ssd_read());
    out_cost_ = nanos(machine.link.from_device, machine.ssd_write());
    std::partial_sum(slots_.begin(), slots_.end(), starts_.begin() + 1);
    for (std::size_t index = 0; index < circle_.periods(); ++index)
      if (circle_.plannable(index) && kernels_away(index) > 0)
        beginning_[(circle_.period(index).after.value + 1) % circle_.kernels()].push_back(index);
  }

  void choose() {
    for (std::uint32_t kernel = 0; kernel < circle_.kernels(); ++kernel)  // away when the first iteration begins
      for (const std::size_t index : beginning_[kernel])
        if (const std::uint64_t until = kernel + kernels_away(index); until > circle_.kernels())
          open_[circle_.period(index).last ? kDirtyLast : kDirty].push({until - circle_.kernels(), index});
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
      const std::uint32_t returns = kernels_away(index) + 1;
      absences.push_back({.period = index, .tier = window->tier(), .left = 0, .returns = returns});
      circle_.add(excess, circle_.stretch(index, 1, returns), -static_cast<std::int64_t>(circle_.bytes(index).value));
    }
    const auto order = circle_.prefetch_eagerly(absences, excess);
    return circle_.plan(absences, order, &copies);
  }

 private:
  // What it costs to be away: the way back, unless it is the last; the way out, unless the SSD has the bytes.
  enum Kind : std::uint8_t { kDirty, kClean, kDirtyLast, kCleanLast };
  static constexpr std::size_t kKinds = 4;
  Kind kind_of(std::size_t index, const Copies& copies) const {
    const bool clean = copies.is_written_anyway(index);
    if (circle_.period(index).last) return clean ? kCleanLast : kDirtyLast;
    return clean ? kClean : kDirty;
  }
  // Where there is room but no time: kernels will wait.
  static std::optional<Below::Window> late(std::size_t index, const Below& below, const Copies& copies) {
    if (below.has_room(Tier::ssd, index)) return Below::Window{.lane = Traffic::Lane::ssd};
    if (copies.is_written_anyway(index) || !below.has_room(Tier::host, index)) return std::nullopt;
    return Below::Window{.lane = Traffic::Lane::host};
  }
  // The kernel before the one that needs it is left for its way back.
  std::uint32_t kernels_away(std::size_t index) const {
    return circle_.length(index) - (circle_.period(index).last ? 1 : 2);
  }
  double time(std::uint64_t kernel) const {
    const std::uint64_t iteration = kernel / circle_.kernels();
    return static_cast<double>(iteration * starts_.back() + starts_[kernel % circle_.kernels()]);
  }

  void choose_in(std::uint64_t iteration, Copies& copies) {
    for (std::uint32_t kernel = 0; kernel < circle_.kernels(); ++kernel) {
      const std::uint64_t now = circle_.kernels() * iteration + kernel;
      away_ -= std::exchange(returning_[now % returning_.size()], 0);
      for (const std::size_t index : beginning_[kernel])
        open_[kind_of(index, copies)].push({now + kernels_away(index), index});
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
    constexpr double kNextToNothing = 1e-9;
    const std::array<double, kKinds> costs{in_cost_ + out_cost_, in_cost_, out_cost_, kNextToNothing};
    std::size_t best = kKinds;
    double most = -1;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      auto& open = open_[kind];
      if (!open.empty() && open.top().until <= now) open = {};  // All are over.
      if (open.empty()) continue;
      const double worth = (time(open.top().until) - time(now)) / costs[kind];
      if (worth <= most) continue;
      most = worth;
      best = kind;
    }
    if (best == kKinds) return std::nullopt;
    const Open next = open_[best].top();
    open_[best].pop();
    return next;
  }

  const Problem& problem_;
  Circle circle_;
  std::vector<std::int64_t> excess_;                    // by kernel: bytes alive over what the device holds
  double in_cost_ = 0, out_cost_ = 0;                   // nanoseconds a byte
  std::vector<std::uint64_t> slots_;                    // nanoseconds of each kernel with the gap before it
  std::vector<std::uint64_t> starts_;                   // of kernels, in nanoseconds; the iteration's end at the end
  std::vector<std::vector<std::size_t>> beginning_;     // periods, by kernel
  std::array<std::priority_queue<Open>, kKinds> open_;  // periods that could begin now
  std::vector<std::int64_t> returning_;                 // bytes, by kernel modulo two iterations
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
