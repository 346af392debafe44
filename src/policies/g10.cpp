// G10's planner (MICRO'23): Algorithm 1 (section 4.3) and eager prefetching (section 4.4). Where the paper leaves
// something open, docs/simulation.md says what is done here.

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <vector>

#include "base/check.h"
#include "policies/below.h"
#include "policies/circle.h"
#include "policies/copies.h"
#include "policies/policies.h"
#include "policies/pressure.h"
#include "policies/traffic.h"

namespace spillway {
namespace {

// Where and when a tensor could be away, and whether that is worth it.
struct Choice {
  struct Ahead {
    std::size_t period;
    Below::Window window;
  };
  Below::Window window;
  std::optional<Ahead> ahead = {};  // it is stored in the period before, and so leaves without being copied
  Pressure::Wide benefit = 0;       // byte nanoseconds
  double ratio = 0;                 // benefit over cost
};

// Where each one that is taken lowers all others a little, all would be looked at for each of them. After so many steps
// in the tree of pressures a candidate, far more than iterations of real models need, the best one known is taken as it
// is.
constexpr std::uint64_t kStepsEach = 4096;

struct Options {
  bool use_host = true;
  bool know_copies = false;  // a clean tensor leaves without being copied
  bool store_ahead = false;  // with know_copies: an inactive period may serve only to store the tensor for the next one
  bool know_last = false;    // what only waits to be freed leaves without coming back
  int most_rounds = 8;
};

class Planner {
 public:
  // `slots`: the nanoseconds of each kernel with the gap before it, and the wait after it that the plan itself causes.
  Planner(const Problem& problem, const Options& options, const std::vector<std::uint64_t>& slots)
      : circle_(problem),
        machine_(problem.machine),
        use_host_(options.use_host),
        store_ahead_(options.store_ahead),
        know_last_(options.know_last),
        slots_(slots),
        excess_(circle_.excess(), slots_),
        below_(problem, circle_, slots_),
        booked_(circle_.periods()) {
    if (options.know_copies) copies_.emplace(problem.trace, problem.lifetimes, problem.machine.host.keeps_copies != 0);
  }

  // Algorithm 1. Ratios mostly fall, as pressure and free capacity do, so a candidate is looked at again only when it
  // comes to the top of the heap: it is taken if it still beats the next one, else it goes back with its new ratio.
  // (docs/simulation.md says what that leaves out.) What a copy on the SSD makes cheaper enters the heap once more.
  void choose_evictions() {
    struct Candidate {
      double ratio;
      std::size_t period;
    };
    const auto worse = [&](const Candidate& a, const Candidate& b) {
      if (a.ratio != b.ratio) return a.ratio < b.ratio;
      const InactivePeriod& x = period(a.period);
      const InactivePeriod& y = period(b.period);
      return std::pair(x.after, x.tensor) > std::pair(y.after, y.tensor);
    };
    std::vector<Candidate> candidates;
    if (excess_.max() > 0)
      for (std::size_t index = 0; index < circle_.periods(); ++index)
        if (is_candidate(index))
          if (const auto first = choice(index)) candidates.push_back({first->ratio, index});
    const std::uint64_t most_steps = steps_ + kStepsEach * candidates.size();
    std::priority_queue heap(worse, std::move(candidates));
    while (!heap.empty() && excess_.max() > 0) {
      Candidate top = heap.top();
      heap.pop();
      if (booked_[top.period]) continue;
      const auto now = choice(top.period);
      if (!now) continue;
      top.ratio = now->ratio;
      if (steps_ < most_steps && !heap.empty() && worse(top, heap.top()))
        heap.push(top);
      else
        for (const std::size_t cheaper : book(top.period, *now))
          if (!booked_[cheaper] && is_candidate(cheaper))
            if (const auto again = choice(cheaper)) heap.push({again->ratio, cheaper});
    }
  }

  Plan plan() {
    const auto order = circle_.prefetch_eagerly(absences_, excess_);
    return circle_.plan(absences_, order, copies());
  }

  std::int64_t overcommitted() const { return std::max<std::int64_t>(0, excess_.max()); }

  // Nanoseconds, with those that kernels wait for the plan.
  std::uint64_t iteration() const {
    const auto slots = with_waits();
    return std::accumulate(slots.begin(), slots.end(), std::uint64_t{0});
  }
  std::vector<std::uint64_t> with_waits() const { return below_.with_waits(slots_, excess_, use_host_); }

 private:
  const InactivePeriod& period(std::size_t index) const { return circle_.period(index); }
  Bytes bytes(std::size_t index) const { return circle_.bytes(index); }
  bool is_candidate(std::size_t index) const { return circle_.plannable(index) && (know_last_ || !period(index).last); }

  std::optional<Choice> choice(std::size_t index) {
    std::optional<Choice> best;
    if (const auto window = below_.place(index, copies(), use_host_))
      best = worth(index, {.window = *window}, cost(index, window->lane));
    if (const auto stored = stored_ahead(index))
      if (!best || best->ratio < stored->ratio) best = stored;
    return best;
  }

  // The link out may have time before the period, when it has none in it.
  std::optional<Choice> stored_ahead(std::size_t index) {
    const auto before = store_ahead_ ? copies_->ahead_of(index) : std::nullopt;
    if (!before || booked_[*before] || !is_candidate(*before)) return std::nullopt;
    const auto ahead = below_.place(*before, copies(), use_host_);
    if (!ahead || !copies_->keeps(ahead->tier())) return std::nullopt;
    const auto window = below_.place_stored(*before, index, ahead->tier(), *copies_);
    if (!window) return std::nullopt;
    return worth(index, {.window = *window, .ahead = Choice::Ahead{*before, *ahead}},
                 cost_back(index, window->lane) + cost(*before, ahead->lane));
  }

  std::optional<Choice> worth(std::size_t index, Choice choice, double cost) {
    circle_.both_parts(circle_.stretch(index, choice.window.left + 1, choice.window.returns), [&](std::uint32_t begin,
                                                                                                  std::uint32_t end) {
      choice.benefit += excess_.benefit(begin, end, static_cast<std::int64_t>(bytes(index).value), steps_);
    });
    if (choice.benefit == 0) return std::nullopt;
    choice.ratio = static_cast<double>(choice.benefit) / std::max(1.0, cost);
    return choice;
  }

  // Both transfer times on that tier, in nanoseconds; without the way out if that costs nothing more, and without the
  // way back if nobody needs it.
  double cost(std::size_t index, Traffic::Lane lane) const {
    const bool is_stored =
        copies_ && copies_->is_written_anyway(index, lane == Traffic::Lane::ssd ? Tier::ssd : Tier::host);
    const double out =
        is_stored ? 0 : time(index, lane, machine_.link.from_device, machine_.ssd_write(), machine_.ssd.write_latency);
    return out + cost_back(index, lane);
  }
  double cost_back(std::size_t index, Traffic::Lane lane) const {
    if (period(index).last) return 0;
    return time(index, lane, machine_.link.to_device, machine_.ssd_read(), machine_.ssd.read_latency);
  }
  double time(std::size_t index, Traffic::Lane lane, BytesPerSecond link, BytesPerSecond drives, Nanos latency) const {
    const bool ssd = lane == Traffic::Lane::ssd;
    const Nanos moving = transfer_time(bytes(index), ssd ? std::min(link, drives) : link);
    return static_cast<double>((moving + (ssd ? latency : machine_.link.latency)).value);
  }

  // Returns what has become cheaper.
  std::vector<std::size_t> book(std::size_t index, const Choice& choice) {
    std::vector<std::size_t> cheaper;
    if (choice.ahead) cheaper = book(choice.ahead->period, choice.ahead->window);
    const auto more = book(index, choice.window);
    cheaper.insert(cheaper.end(), more.begin(), more.end());
    return cheaper;
  }
  std::vector<std::size_t> book(std::size_t index, const Below::Window& window) {
    booked_[index] = true;
    below_.book(index, window, copies());
    circle_.add(excess_, circle_.stretch(index, window.left + 1, window.returns),
                -static_cast<std::int64_t>(bytes(index).value));
    absences_.push_back({.period = index, .tier = window.tier(), .left = window.left, .returns = window.returns});
    return copies_ ? copies_->plan(index, window.tier()) : std::vector<std::size_t>{};
  }
  const Copies* copies() const { return copies_ ? &*copies_ : nullptr; }

  Circle circle_;
  const MachineModel& machine_;
  bool use_host_, store_ahead_, know_last_;
  std::vector<std::uint64_t> slots_;  // nanoseconds; see the constructor
  Pressure excess_;                   // bytes on the device over its capacity
  Below below_;
  std::optional<Copies> copies_;   // nothing: all that leaves is copied
  std::vector<bool> booked_;       // by period
  std::vector<Absence> absences_;  // in the order of Algorithm 1
  std::uint64_t steps_ = 0;        // of all looks at candidates
};

// Where the links cannot keep up, kernels will wait, and the links work on meanwhile. A plan that knows of those waits
// finds windows for what else would leave as a victim and come back late, so it is made again on the longer timeline.
// Storing ahead costs a way in and back more: only where the links cannot keep up without.
Plan plan_in_rounds(const Problem& problem, Options options) {
  auto planner = std::make_unique<Planner>(problem, options, slots_of(problem.trace));
  planner->choose_evictions();
  if (options.know_copies && planner->overcommitted() > 0) {
    options.store_ahead = true;
    auto ahead = std::make_unique<Planner>(problem, options, slots_of(problem.trace));
    ahead->choose_evictions();
    options.store_ahead = ahead->iteration() < planner->iteration();
    if (options.store_ahead) planner = std::move(ahead);
  }
  const std::int64_t overcommitted = planner->overcommitted();
  for (int round = 1; round < options.most_rounds && planner->overcommitted() > 0; ++round) {
    auto next = std::make_unique<Planner>(problem, options, planner->with_waits());
    next->choose_evictions();
    if (next->overcommitted() >= planner->overcommitted()) break;
    planner = std::move(next);
  }
  Plan plan = planner->plan();
  plan.overcommitted = {static_cast<std::uint64_t>(overcommitted)};
  return plan;
}

}  // namespace

Plan plan_g10_gds(const Problem& problem) { return plan_in_rounds(problem, {.use_host = false}); }
Plan plan_g10(const Problem& problem) { return plan_in_rounds(problem, {}); }
Plan plan_g10_clean(const Problem& problem) {
  return plan_in_rounds(problem, {.know_copies = true, .know_last = true});
}
Plan plan_g10_once(const Problem& problem) { return plan_in_rounds(problem, {.most_rounds = 1}); }

}  // namespace spillway
