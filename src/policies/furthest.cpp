// What is needed furthest in the future leaves (Belady, "A study of replacement algorithms for a virtual-storage
// computer", 1966), and comes back as early as there is room for it. Which tier takes what, the links' loads decide.
//
// `furthest` chooses as if moves took no time, and leaves it to the executor to keep the links at work.
// `furthest-ahead` chooses again, knowing the waits of that, ahead of the kernels that would wait for what leaves; and
// it counts on no room before that is there. `furthest-lean` looks ahead, too, but would rather wait a little than move
// more.

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <ranges>
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
// The second one mostly finds all that is tight.
constexpr int kMostRounds = 3;

enum class How : std::uint8_t { at_once, ahead, lean };
// So many times as much as it takes writing costs then. A larger figure hardly leaves less to write, and more to bring
// back.
constexpr double kWritingWhenLean = 5;

// Kernels are counted through all iterations.
struct Open {
  std::uint64_t until;  // it can be away before this kernel
  std::size_t period;
  friend auto operator<=>(const Open&, const Open&) = default;
};

class FurthestFirst {
 public:
  FurthestFirst(const Problem& problem, How how)
      : problem_(problem),
        how_(how),
        circle_(problem),
        excess_(circle_.excess()),
        slots_(slots_of(problem.trace)),
        starts_(circle_.kernels() + 1),
        is_tight_(circle_.kernels()),
        kernels_away_(circle_.periods()),
        beginning_(circle_.kernels()),
        away_(nothing_away()) {
    const MachineModel& machine = problem.machine;
    const auto nanos = [](BytesPerSecond link, BytesPerSecond drives) {
      return 1e9 / static_cast<double>(std::min(link, drives).value);
    };
    in_cost_ = nanos(machine.link.to_device, machine.ssd_read());
    out_cost_ = nanos(machine.link.from_device, machine.ssd_write());
    add_up();
    for (std::size_t index = 0; index < circle_.periods(); ++index) {
      if (!circle_.plannable(index)) continue;
      kernels_away_[index] = kernels_away(index);
      if (kernels_away_[index] > 0) beginning_[begin_of(index) % circle_.kernels()].push_back(index);
    }
  }

  void choose() {
    wanted_ = wanted();
    away_ = nothing_away();
    open_ = {};
    chosen_.clear();
    for (std::uint32_t kernel = 0; kernel < circle_.kernels(); ++kernel)  // away when the first iteration begins
      for (const std::size_t index : beginning_[kernel])
        if (const std::uint64_t until = kernel + kernels_away_[index]; until > circle_.kernels())
          open_[circle_.period(index).last ? kDirtyLast : kDirty].push({until - circle_.kernels(), index});
    for (std::uint64_t iteration = 0; iteration < kMostIterations; ++iteration) {
      const std::vector<std::size_t> before = std::exchange(chosen_, {});
      Copies copies = no_copies();
      for (const std::size_t index : before)
        if (circle_.period(index).wraps) copies.plan(index, Tier::ssd);
      choose_in(iteration, copies);
      std::ranges::sort(chosen_);
      if (chosen_ == before) return;
    }
    // One that is open at the end of an iteration may be chosen there and, begun anew, in the next one.
    chosen_.erase(std::ranges::unique(chosen_).begin(), chosen_.end());
  }

  // What was chosen.
  Plan plan() {
    Pressure excess(excess_, slots_), unmet(excess_, slots_);
    Below below(problem_, circle_, slots_);
    Copies copies = no_copies();
    std::vector<std::size_t> in_turn = chosen_;  // as they will leave: so neither way down is late for long
    std::ranges::stable_sort(in_turn, {}, [&](std::size_t index) { return circle_.period(index).after; });
    std::vector<Absence> absences;
    for (const std::size_t index : in_turn) {
      const auto in_time = below.place(index, &copies, true);
      const auto window = in_time ? in_time : late(index, below, copies);
      if (!window) continue;
      below.book(index, *window, &copies);
      copies.plan(index, window->tier());
      const std::uint32_t returns = latest(index);
      const std::uint32_t left = how_ == How::ahead ? window->left : 0;
      absences.push_back({.period = index, .tier = window->tier(), .left = left, .returns = returns});
      const auto size = static_cast<std::int64_t>(circle_.bytes(index).value);
      circle_.add(excess, circle_.stretch(index, left + 1, returns), -size);
      if (in_time) circle_.add(unmet, circle_.stretch(index, window->left + 1, returns), -size);
    }
    if (how_ == How::lean) copies = keep_here(absences, excess);
    const auto order = circle_.prefetch_eagerly(absences, excess);
    late_bytes_ = std::max<std::int64_t>(0, unmet.max());
    if (!overcommitted_) overcommitted_ = Bytes{static_cast<std::uint64_t>(late_bytes_)};
    if (looks_ahead() && late_bytes_ > 0) learn(unmet, below);
    Plan plan = circle_.plan(absences, order, &copies);
    plan.overcommitted = *overcommitted_;
    return plan;
  }
  // Of that, the most bytes that cannot leave in time for a kernel; choose() knows by now for which.
  std::int64_t late_bytes() const { return late_bytes_; }

 private:
  bool looks_ahead() const { return how_ != How::at_once; }
  // What was chosen first may have become needless: it stays, the largest first, where the others leave room for it.
  // Returns the copies that they still make.
  Copies keep_here(std::vector<Absence>& absences, Pressure& excess) const {
    std::vector<Absence> largest_first = absences;
    std::ranges::stable_sort(largest_first, std::greater{},
                             [&](const Absence& absence) { return circle_.bytes(absence.period); });
    std::vector<bool> stays(circle_.periods());
    for (const Absence& absence : largest_first) {
      const Stretch away = circle_.stretch(absence.period, absence.left + 1, absence.returns);
      stays[absence.period] = circle_.has_room(excess, away, circle_.bytes(absence.period));
      if (stays[absence.period])
        circle_.add(excess, away, static_cast<std::int64_t>(circle_.bytes(absence.period).value));
    }
    std::erase_if(absences, [&](const Absence& absence) { return stays[absence.period]; });
    Copies copies = no_copies();
    // Of what goes to the host between two writes no copies are kept, whatever else was chosen before it.
    for (const Tier tier : {Tier::host, Tier::ssd})
      for (const Absence& absence : absences)
        if (absence.tier == tier) copies.plan(absence.period, tier);
    return copies;
  }
  Copies no_copies() const { return {problem_.trace, problem_.lifetimes, problem_.machine.host.keeps_copies != 0}; }
  // What it costs to be away: the way back, unless it is the last; the way out, unless a tier below has the bytes.
  enum Kind : std::uint8_t { kDirty, kClean, kDirtyLast, kCleanLast };
  static constexpr std::size_t kKinds = 4;
  Kind kind_of(std::size_t index, const Copies& copies) const {
    const bool clean = copies.is_written_anyway(index);
    if (circle_.period(index).last) return clean ? kCleanLast : kDirtyLast;
    return clean ? kClean : kDirty;
  }
  // Where there is room but no time: kernels will wait.
  std::optional<Below::Window> late(std::size_t index, const Below& below, const Copies& copies) const {
    if (circle_.period(index).last) return std::nullopt;  // It is freed before it could leave.
    const auto only = copies.only_tier(index);
    for (const Tier tier : {Tier::ssd, Tier::host})
      if (only.value_or(tier) == tier && below.has_room(tier, index, &copies))
        return Below::Window{.lane = tier == Tier::ssd ? Traffic::Lane::ssd : Traffic::Lane::host,
                             .clean = copies.is_clean(index, tier)};
    return std::nullopt;
  }
  std::uint64_t begin_of(std::size_t index) const { return circle_.period(index).after.value + 1; }
  // The place at which it comes back at the latest, the kernel before the one that needs it.
  std::uint32_t latest(std::size_t index) const { return circle_.length(index) - (circle_.period(index).last ? 0 : 1); }
  // What is left of the period for others: looking ahead, without the way back over an idle link. One at least, if any.
  std::uint32_t kernels_away(std::size_t index) const {
    if (!looks_ahead() || circle_.period(index).last || latest(index) < 2) return latest(index) - 1;
    const std::uint64_t first = begin_of(index) + 1, needed = begin_of(index) + latest(index);
    const double way_back = static_cast<double>(circle_.bytes(index).value) * in_cost_;
    const auto returns = std::views::iota(first, needed);
    const auto late = std::ranges::partition_point(
        returns, [&](std::uint64_t kernel) { return time(kernel) + way_back <= time(needed); });
    return std::max(1u, static_cast<std::uint32_t>(late - returns.begin()));
  }
  // What must have begun to leave when a kernel starts, for the sake of a tight one: the bytes that the device cannot
  // hold then, less those that the link out can take from the end of this kernel on.
  struct Wanted {
    double bytes = -std::numeric_limits<double>::infinity();
    std::uint32_t in = 0;  // so many kernels later
  };
  std::vector<Wanted> wanted() const {
    const std::uint32_t kernels = circle_.kernels();
    std::vector<Wanted> wanted(kernels);
    for (std::uint32_t kernel = 0; kernel < kernels; ++kernel)
      if (is_tight_[kernel]) wanted[kernel].bytes = static_cast<double>(excess_[kernel]);
    for (std::uint32_t step = 2 * kernels; step-- > 0;) {  // Twice around, since it is a circle.
      const std::uint32_t kernel = step % kernels;
      const Wanted& next = wanted[(kernel + 1) % kernels];
      const double before = next.bytes - static_cast<double>(slots_[kernel]) / out_cost_;
      if (before > wanted[kernel].bytes && next.in + 2 < kernels)  // Nothing is away for longer.
        wanted[kernel] = {before, next.in + 1};
    }
    std::ranges::rotate(wanted, wanted.begin() + 1);  // What is to have left by the next kernel begins by this one.
    for (Wanted& each : wanted) ++each.in;
    return wanted;
  }
  // Kernels at which room was missing, and how long they wait for it.
  void learn(const Pressure& unmet, const Below& below) {
    for (std::uint32_t kernel = 0; kernel < circle_.kernels(); ++kernel)
      is_tight_[kernel] = is_tight_[kernel] || unmet.max(kernel, kernel + 1) > 0;
    slots_ = below.with_waits(std::move(slots_), unmet, true);
    add_up();
  }
  void add_up() { std::partial_sum(slots_.begin(), slots_.end(), starts_.begin() + 1); }
  double time(std::uint64_t kernel) const {
    const std::uint64_t iteration = kernel / circle_.kernels();
    return static_cast<double>(iteration * starts_.back() + starts_[kernel % circle_.kernels()]);
  }

  void choose_in(std::uint64_t iteration, Copies& copies) {
    for (std::uint32_t kernel = 0; kernel < circle_.kernels(); ++kernel) {
      const std::uint64_t now = circle_.kernels() * iteration + kernel;
      for (const std::size_t index : beginning_[kernel])
        open_[kind_of(index, copies)].push({now + kernels_away_[index], index});
      const std::uint64_t then = now + wanted_[kernel].in;
      for (;;) {
        const bool is_full = away(now) < excess_[kernel];
        if (!is_full && static_cast<double>(away(then)) >= wanted_[kernel].bytes) break;
        const auto next = furthest(now, is_full ? now : then);
        if (!next) break;
        leaves(now, next->until, static_cast<std::int64_t>(circle_.bytes(next->period).value));
        chosen_.push_back(next->period);
        copies.plan(next->period, Tier::ssd);  // Which tier, plan() chooses.
      }
      leaves(now, now + 1, -away(now));  // Its place is for a later kernel.
    }
  }

  // Bytes that are away at a kernel, by its place in two iterations.
  Pressure nothing_away() const {
    const std::size_t places = std::size_t{circle_.kernels()} * 2;
    return {std::vector<std::int64_t>(places), std::vector<std::uint64_t>(places)};
  }
  std::int64_t away(std::uint64_t kernel) const {
    const std::uint32_t place = place_of(kernel);
    return away_.max(place, place + 1);
  }
  void leaves(std::uint64_t now, std::uint64_t until, std::int64_t bytes) {
    const std::uint32_t begin = place_of(now), end = place_of(until), places = circle_.kernels() * 2;
    away_.add(begin, begin < end ? end : places, bytes);
    if (begin >= end && end > 0) away_.add(0, end, bytes);
  }
  std::uint32_t place_of(std::uint64_t kernel) const {
    return static_cast<std::uint32_t>(kernel % (std::uint64_t{circle_.kernels()} * 2));
  }

  // Of what is there and could be away at a later kernel, what is needed last for what its way costs.
  std::optional<Open> furthest(std::uint64_t now, std::uint64_t then) {
    constexpr double kNextToNothing = 1e-9;
    const double out = out_cost_ * (how_ == How::lean ? kWritingWhenLean : 1);
    const std::array<double, kKinds> costs{in_cost_ + out, in_cost_, out, kNextToNothing};
    std::size_t best = kKinds;
    double most = -1;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      auto& open = open_[kind];
      if (!open.empty() && open.top().until <= now) open = {};  // All are over.
      if (open.empty() || open.top().until <= then) continue;
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
  How how_;
  Circle circle_;
  std::vector<std::int64_t> excess_;                    // by kernel: bytes alive over what the device holds
  double in_cost_ = 0, out_cost_ = 0;                   // nanoseconds a byte
  std::vector<std::uint64_t> slots_;                    // nanoseconds of each kernel with the gap before it, and waits
  std::vector<std::uint64_t> starts_;                   // of kernels, in nanoseconds; the iteration's end at the end
  std::vector<bool> is_tight_;                          // by kernel: not all that it needs the room of leaves in time
  std::vector<Wanted> wanted_;                          // by kernel
  std::vector<std::uint32_t> kernels_away_;             // by period
  std::vector<std::vector<std::size_t>> beginning_;     // periods, by kernel
  std::array<std::priority_queue<Open>, kKinds> open_;  // periods that could begin now
  Pressure away_;                                       // bytes, by kernel modulo two iterations
  std::int64_t late_bytes_ = 0;
  std::optional<Bytes> overcommitted_;  // by the first plan
  std::vector<std::size_t> chosen_;     // in the last iteration
};

Plan best_of_rounds(const Problem& problem, How how) {
  FurthestFirst planner(problem, how);
  Plan best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < kMostRounds && least > 0; ++round) {
    planner.choose();
    Plan plan = planner.plan();
    // The first one knew of no waits: rounds that leave as much undone are better.
    if (planner.late_bytes() > least) break;
    least = planner.late_bytes();
    best = std::move(plan);
  }
  return best;
}

}  // namespace

Plan plan_furthest(const Problem& problem) {
  FurthestFirst planner(problem, How::at_once);
  planner.choose();
  return planner.plan();
}
Plan plan_furthest_ahead(const Problem& problem) { return best_of_rounds(problem, How::ahead); }
Plan plan_furthest_lean(const Problem& problem) { return best_of_rounds(problem, How::lean); }

}  // namespace spillway
