// G10's planner (MICRO'23): Algorithm 1 (section 4.3) and eager prefetching (section 4.4). Where the paper leaves
// something open, docs/simulation.md says what is done here.

#include <algorithm>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "base/check.h"
#include "plan/validate.h"
#include "policies/copies.h"
#include "policies/policies.h"
#include "policies/pressure.h"
#include "policies/traffic.h"

namespace spillway {
namespace {

using Lane = Traffic::Lane;

// A stretch of the circular iteration: `count` kernels from `begin` on.
struct Stretch {
  std::uint32_t begin = 0, count = 0;
};

// Where and when a tensor could be away. Places are kernels counted from the start of its period.
struct Choice {
  Lane lane = Lane::ssd;
  bool clean = false;          // the SSD has the bytes already
  std::uint32_t left = 0;      // the eviction ends in this kernel
  std::uint32_t returns = 0;   // the prefetch starts in this kernel, at the latest safe time
  Pressure::Wide benefit = 0;  // byte nanoseconds
  double ratio = 0;            // benefit over cost
};

// An inactive period whose tensor will be away.
struct Booking {
  std::size_t period = 0;
  Choice choice;
};

struct Options {
  bool use_host = true;
  bool know_copies = false;  // a clean tensor leaves without being copied
  int most_rounds = 8;
};

class Planner {
 public:
  // `slots`: the nanoseconds of each kernel with the gap before it, and the wait after it that the plan itself causes.
  Planner(const Problem& problem, const Options& options, const std::vector<std::uint64_t>& slots)
      : trace_(problem.trace),
        lifetimes_(problem.lifetimes),
        machine_(problem.machine),
        use_host_(options.use_host),
        kernels_(static_cast<std::uint32_t>(trace_.kernels.size())),
        slots_(slots),
        excess_(over(lifetimes_.live, machine_.device.memory), slots_),
        host_(over({}, machine_.host.memory), slots_),
        ssd_(over({}, machine_.ssd_capacity()), slots_),
        out_(bytes_per_slot(slots_, machine_.link.from_device), bytes_per_slot(slots_, machine_.ssd_write())),
        in_(bytes_per_slot(prefetch_slots(), machine_.link.to_device),
            bytes_per_slot(prefetch_slots(), machine_.ssd_read())),
        booked_(lifetimes_.periods.size()) {
    if (options.know_copies) copies_.emplace(trace_, lifetimes_);
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
      for (std::size_t index = 0; index < lifetimes_.periods.size(); ++index)
        if (plannable(index))
          if (const auto first = choice(index)) candidates.push_back({first->ratio, index});
    std::priority_queue heap(worse, std::move(candidates));
    while (!heap.empty() && excess_.max() > 0) {
      Candidate top = heap.top();
      heap.pop();
      if (booked_[top.period]) continue;
      const auto now = choice(top.period);
      if (!now) continue;
      top.ratio = now->ratio;
      if (!heap.empty() && worse(top, heap.top()))
        heap.push(top);
      else
        for (const std::size_t cheaper : book(top.period, *now))
          if (!booked_[cheaper] && plannable(cheaper))
            if (const auto again = choice(cheaper)) heap.push({again->ratio, cheaper});
    }
  }

  // In the order of the latest safe times, each prefetch moves back as long as the whole tensor fits.
  void prefetch_eagerly() {
    prefetch_order_.resize(bookings_.size());
    for (std::size_t at = 0; at < bookings_.size(); ++at) prefetch_order_[at] = at;
    const auto latest = [&](std::size_t at) {
      const Booking& booking = bookings_[at];
      return std::tuple(stretch(booking.period, booking.choice.returns, 0).begin,
                        length(booking.period) - booking.choice.returns, period(booking.period).tensor);
    };
    std::ranges::sort(prefetch_order_, {}, latest);
    for (const std::size_t at : prefetch_order_) {
      Booking& booking = bookings_[at];
      const auto size = static_cast<std::int64_t>(bytes(booking.period).value);
      std::uint32_t start = booking.choice.returns;
      const Stretch gained = stretch(booking.period, booking.choice.left + 1, start);
      const std::uint32_t first = std::min(gained.count, kernels_ - gained.begin);
      // From the end back: the part behind the iteration's end first, if there is one.
      const std::uint32_t behind = gained.count - first;
      const std::uint32_t stop = excess_.run_before(0, behind, -size);
      std::uint32_t free = behind - stop;
      if (stop == 0) free += gained.begin + first - excess_.run_before(gained.begin, gained.begin + first, -size);
      start -= free;
      add(excess_, stretch(booking.period, start, booking.choice.returns), size);
      booking.choice.returns = start;
    }
  }

  Plan plan() const {
    Plan plan;
    for (const Booking& booking : bookings_) {
      const InactivePeriod& away = period(booking.period);
      plan.evictions.push_back({away.tensor, away.after, booking.choice.lane == Lane::host ? Tier::host : Tier::ssd});
    }
    for (const std::size_t at : prefetch_order_) {
      const Booking& booking = bookings_[at];
      const bool on_ssd = booking.choice.lane == Lane::ssd;
      plan.prefetches.push_back({.tensor = period(booking.period).tensor,
                                 .at = {stretch(booking.period, booking.choice.returns, 0).begin},
                                 .keeps_copy = copies_ && on_ssd && copies_->is_worth_keeping(booking.period)});
    }
    std::ranges::stable_sort(plan.evictions, {}, &Eviction::after);
    std::ranges::stable_sort(plan.prefetches, {}, &Prefetch::at);
    return plan;
  }

  std::int64_t overcommitted() const { return std::max<std::int64_t>(0, excess_.max()); }

  // How long kernels wait for what the links could not take away in time: before each kernel at which the excess grows,
  // as long as the growth takes on its way out. The wait is added to the slot before that kernel.
  std::vector<std::uint64_t> with_waits() const {
    const auto rate = [&](std::uint32_t kernel) {
      const bool host = use_host_ && host_.max(kernel, kernel + 1) < 0;
      return host ? machine_.link.from_device : std::min(machine_.link.from_device, machine_.ssd_write());
    };
    const auto excess = [&](std::uint32_t kernel) {
      return std::max<std::int64_t>(0, excess_.max(kernel, kernel + 1));
    };
    std::vector<std::uint64_t> result = slots_;
    std::uint64_t most = std::uint64_t{1} << 58;  // of all waits, so that their sums fit
    std::int64_t before = excess(kernels_ - 1);
    for (std::uint32_t kernel = 0; kernel < kernels_; ++kernel) {
      const std::int64_t now = excess(kernel);
      if (now > before) {
        const Nanos wait = transfer_time(Bytes{static_cast<std::uint64_t>(now - before)}, rate(kernel));
        result[(kernel + kernels_ - 1) % kernels_] += std::min(wait.value, most);
        most -= std::min(wait.value, most);
      }
      before = now;
    }
    return result;
  }

 private:
  std::vector<std::int64_t> over(const std::vector<Bytes>& bytes, Bytes capacity) const {
    std::vector<std::int64_t> result(kernels_, -static_cast<std::int64_t>(capacity.value));
    for (std::size_t kernel = 0; kernel < bytes.size(); ++kernel)
      result[kernel] += static_cast<std::int64_t>(bytes[kernel].value);
    return result;
  }
  // A prefetch starts with its kernel, after the gap before it, and may use the gap before the next one.
  std::vector<std::uint64_t> prefetch_slots() const {
    std::vector<std::uint64_t> result = slots_;
    for (std::uint32_t kernel = 0; kernel < kernels_; ++kernel) {
      result[kernel] -= trace_.kernels[kernel].gap.value;
      result[kernel] += trace_.kernels[(kernel + 1) % kernels_].gap.value;
    }
    return result;
  }
  // At most what a sum over all kernels can hold.
  static std::vector<std::uint64_t> bytes_per_slot(const std::vector<std::uint64_t>& slots, BytesPerSecond rate) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    const std::uint64_t most = kMost / slots.size();
    std::vector<std::uint64_t> result;
    for (const std::uint64_t slot : slots)
      result.push_back(static_cast<std::uint64_t>(
          std::min<unsigned __int128>(static_cast<unsigned __int128>(slot) * rate.value / 1'000'000'000u, most)));
    return result;
  }

  const InactivePeriod& period(std::size_t index) const { return lifetimes_.periods[index]; }
  Bytes bytes(std::size_t index) const { return trace_[period(index).tensor].bytes; }
  std::uint32_t length(std::size_t index) const { return length_of(period(index), kernels_); }

  // The kernels of a period from one place (inclusive) to another (exclusive).
  Stretch stretch(std::size_t index, std::uint32_t from, std::uint32_t to) const {
    return {(period(index).after.value + from) % kernels_, to > from ? to - from : 0};
  }
  template <class F>
  void both_parts(Stretch stretch, F&& call) const {
    const std::uint32_t first = std::min(stretch.count, kernels_ - stretch.begin);
    call(stretch.begin, stretch.begin + first);
    if (first < stretch.count) call(0u, stretch.count - first);
  }
  void add(Pressure& pressure, Stretch where, std::int64_t amount) const {
    both_parts(where, [&](std::uint32_t begin, std::uint32_t end) { pressure.add(begin, end, amount); });
  }
  bool has_room(const Pressure& tier, Stretch where, Bytes size) const {
    bool room = true;
    both_parts(where, [&](std::uint32_t begin, std::uint32_t end) {
      room &= tier.max(begin, end) + static_cast<std::int64_t>(size.value) <= 0;
    });
    return room;
  }

  // A period that can be planned: its tensor is not packed with others, at least one kernel passes, and what returns is
  // the same tensor that left.
  bool plannable(std::size_t index) const {
    const InactivePeriod& candidate = period(index);
    const Tensor& tensor = trace_[candidate.tensor];
    const bool same = !candidate.wraps || tensor.persistent || tensor.carried_from == candidate.tensor;
    return same && tensor.bytes >= kLeastMovedBytes && length(index) >= 2;
  }

  std::optional<Choice> window(std::size_t index, Lane lane, bool idle, bool clean = false) const {
    const std::uint32_t passing = length(index) - 1;
    const std::uint32_t first = (period(index).after.value + 1) % kernels_;
    const auto out = clean ? 0u : out_.forward(lane, first, bytes(index).value, passing, idle);
    const auto in = in_.backward(lane, period(index).before.value, bytes(index).value, passing, idle);
    if (!out || !in || *out >= length(index) - *in) return std::nullopt;
    return Choice{.lane = lane, .clean = clean, .left = *out, .returns = length(index) - *in};
  }

  // SSD first; it counts as full when its write or its read would miss the window that an idle one would allow.
  std::optional<Choice> place(std::size_t index) const {
    const Stretch whole = stretch(index, 1, length(index));
    if (copies_ && copies_->is_clean(index) && has_room(ssd_, whole, bytes(index)))
      if (const auto clean = window(index, Lane::ssd, false, true)) return clean;
    auto ssd = has_room(ssd_, whole, bytes(index)) ? window(index, Lane::ssd, false) : std::nullopt;
    const auto idle = window(index, Lane::ssd, true);
    if (ssd && idle && ssd->left <= idle->left && ssd->returns >= idle->returns) return ssd;
    const bool only_ssd = copies_ && copies_->is_written_anyway(index);
    if (use_host_ && !only_ssd && has_room(host_, whole, bytes(index)))
      if (const auto host = window(index, Lane::host, false)) return host;
    return ssd;
  }

  std::optional<Choice> choice(std::size_t index) const {
    auto choice = place(index);
    if (!choice) return std::nullopt;
    both_parts(stretch(index, choice->left + 1, choice->returns), [&](std::uint32_t begin, std::uint32_t end) {
      choice->benefit += excess_.benefit(begin, end, static_cast<std::int64_t>(bytes(index).value));
    });
    if (choice->benefit == 0) return std::nullopt;
    choice->ratio = static_cast<double>(choice->benefit) / cost(index, *choice);
    return choice;
  }

  // Both transfer times on that tier, in nanoseconds; without the way out if that costs nothing more.
  double cost(std::size_t index, const Choice& choice) const {
    const Lane lane = choice.lane;
    const bool is_stored = lane == Lane::ssd && copies_ && copies_->is_written_anyway(index);
    const auto time = [&](BytesPerSecond link, BytesPerSecond drives, Nanos latency) {
      const BytesPerSecond rate = lane == Lane::ssd ? std::min(link, drives) : link;
      return static_cast<double>(
          (transfer_time(bytes(index), rate) + (lane == Lane::ssd ? latency : machine_.link.latency)).value);
    };
    return (is_stored ? 0 : time(machine_.link.from_device, machine_.ssd_write(), machine_.ssd.write_latency)) +
           time(machine_.link.to_device, machine_.ssd_read(), machine_.ssd.read_latency);
  }

  // Returns what has become cheaper.
  std::vector<std::size_t> book(std::size_t index, const Choice& choice) {
    const auto size = static_cast<std::int64_t>(bytes(index).value);
    booked_[index] = true;
    if (!choice.clean) out_.book_forward(choice.lane, (period(index).after.value + 1) % kernels_, bytes(index).value);
    in_.book_backward(choice.lane, period(index).before.value, bytes(index).value);
    add(excess_, stretch(index, choice.left + 1, choice.returns), -size);
    add(choice.lane == Lane::host ? host_ : ssd_, stretch(index, 1, length(index)), size);
    bookings_.push_back({index, choice});
    if (!copies_) return {};
    if (choice.lane == Lane::ssd) return copies_->plan(index);
    copies_->plan_elsewhere(index);
    return {};
  }

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  const MachineModel& machine_;
  bool use_host_;
  std::uint32_t kernels_;
  std::vector<std::uint64_t> slots_;  // nanoseconds; see the constructor
  Pressure excess_;                   // bytes on the device over its capacity
  Pressure host_, ssd_;               // planned bytes over the tiers' capacities
  Traffic out_, in_;
  std::optional<Copies> copies_;             // nothing: all that leaves is copied
  std::vector<bool> booked_;                 // by period
  std::vector<Booking> bookings_;            // in the order of Algorithm 1
  std::vector<std::size_t> prefetch_order_;  // of bookings_, by latest safe time
};

std::vector<std::uint64_t> slots_of(const Trace& trace) {
  std::vector<std::uint64_t> slots;
  for (const Kernel& kernel : trace.kernels) slots.push_back((kernel.gap + kernel.duration).value);
  return slots;
}

// Where the links cannot keep up, kernels will wait, and the links work on meanwhile. A plan that knows of those waits
// finds windows for what else would leave as a victim and come back late, so it is made again on the longer timeline.
Plan plan_in_rounds(const Problem& problem, const Options& options) {
  auto planner = std::make_unique<Planner>(problem, options, slots_of(problem.trace));
  planner->choose_evictions();
  const std::int64_t overcommitted = planner->overcommitted();
  for (int round = 1; round < options.most_rounds && planner->overcommitted() > 0; ++round) {
    auto next = std::make_unique<Planner>(problem, options, planner->with_waits());
    next->choose_evictions();
    if (next->overcommitted() >= planner->overcommitted()) break;
    planner = std::move(next);
  }
  planner->prefetch_eagerly();
  Plan plan = planner->plan();
  plan.overcommitted = {static_cast<std::uint64_t>(overcommitted)};
  return plan;
}

}  // namespace

Plan plan_g10_gds(const Problem& problem) { return plan_in_rounds(problem, {.use_host = false}); }
Plan plan_g10(const Problem& problem) { return plan_in_rounds(problem, {}); }
Plan plan_g10_clean(const Problem& problem) { return plan_in_rounds(problem, {.know_copies = true}); }
Plan plan_g10_once(const Problem& problem) { return plan_in_rounds(problem, {.most_rounds = 1}); }

}  // namespace spillway
