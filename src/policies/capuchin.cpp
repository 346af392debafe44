#include <algorithm>
#include <optional>
#include <queue>
#include <ranges>
#include <vector>

#include "analysis/timeline.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "policies/replay_chain.h"
#include "policies/swap_channel.h"

namespace spillway {
namespace {

// A use that waited is prefetched so much of its transfer's time earlier (TENSILE section II).
constexpr double kEarlier = 0.05;
// Waits shorter than this part of the transfer are none.
constexpr double kNoWait = 0.001;

struct FreeTime {
  std::size_t period;
  std::int64_t free_time;  // nanoseconds; negative: what a swap would cost
};

class Choosing {
 public:
  explicit Choosing(const Problem& problem)
      : problem_(problem),
        trace_(problem.trace),
        timeline_(ideal_timeline(problem.trace)),
        chains_(problem.trace, problem.lifetimes),
        dropped_(problem.trace.tensors.size()),
        is_source_(problem.trace.tensors.size()),
        is_swapped_(problem.trace.tensors.size()),
        candidates_(find_candidates()) {}

  Plan plan() {
    Bytes peak = std::ranges::max(problem_.lifetimes.live), host = problem_.machine.host_memory();
    auto swapped = candidates_.begin();
    while (peak > problem_.machine.device.memory) {
      // Host memory only gets less: what does not fit now never will.
      swapped = std::find_if(swapped, candidates_.end(),
                             [&](const FreeTime& one) { return !is_planned(one) && bytes_of(one) <= host; });
      const bool swaps = swapped != candidates_.end();
      std::optional<Replay> replay;
      if (!swaps || swapped->free_time < 0) replay = best_replay();
      if (!swaps && !replay) break;
      if (replay && swaps && static_cast<std::int64_t>(time_of(replay->chain, trace_).value) >= -swapped->free_time)
        replay.reset();
      const FreeTime& chosen = replay ? candidates_[replay->candidate] : *swapped;
      peak = excess(peak, bytes_of(chosen));
      if (replay) {
        recompute(period_of(chosen), std::move(replay->chain));
      } else {
        host -= bytes_of(chosen);
        swap(period_of(chosen), chosen.free_time);
      }
    }
    std::ranges::stable_sort(plan_.evictions, {}, &Eviction::after);
    std::ranges::stable_sort(plan_.prefetches, {}, [](const Prefetch& one) { return std::pair(one.at, one.delay); });
    std::ranges::stable_sort(plan_.recomputations, {}, &Recomputation::drop_after);
    return std::move(plan_);
  }

 private:
  struct Replay {
    std::size_t candidate;
    std::vector<KernelId> chain;
  };
  // Bytes for a second of replaying; of equal ones the first candidate is the greatest.
  struct Gain {
    double bytes_per_second;
    std::size_t candidate;
    friend bool operator<(const Gain& left, const Gain& right) {
      return std::pair(left.bytes_per_second, right.candidate) < std::pair(right.bytes_per_second, left.candidate);
    }
  };

  const InactivePeriod& period_of(const FreeTime& one) const { return problem_.lifetimes.periods[one.period]; }
  Bytes bytes_of(const FreeTime& one) const { return trace_[period_of(one).tensor].bytes; }
  // Nothing more is planned for it.
  bool is_planned(const FreeTime& one) const {
    const std::uint32_t tensor = period_of(one).tensor.value;
    return dropped_[tensor] || is_swapped_[tensor] || is_source_[tensor];
  }
  Nanos out_time(TensorId tensor) const {
    return problem_.machine.link.latency + transfer_time(trace_[tensor].bytes, problem_.machine.link.from_device);
  }
  Nanos in_time(TensorId tensor) const {
    return problem_.machine.link.latency + transfer_time(trace_[tensor].bytes, problem_.machine.link.to_device);
  }
  // Between two uses of which a kernel uses more than the device; the most free time first.
  std::vector<FreeTime> find_candidates() const {
    std::vector<std::uint32_t> over(trace_.kernels.size() + 1);
    for (std::size_t at = 0; at < trace_.kernels.size(); ++at)
      over[at + 1] = over[at] + (problem_.lifetimes.live[at] > problem_.machine.device.memory ? 1 : 0);
    std::vector<FreeTime> candidates;
    for (std::size_t at = 0; at < problem_.lifetimes.periods.size(); ++at) {
      const InactivePeriod& period = problem_.lifetimes.periods[at];
      if (period.wraps || period.last || trace_[period.tensor].bytes < kLeastMovedBytes) continue;
      if (over[period.before.value] == over[period.after.value + 1]) continue;
      const auto time = [](Nanos value) { return static_cast<std::int64_t>(value.value); };
      candidates.push_back({at, time(timeline_.start_of(period.before)) - time(in_time(period.tensor)) -
                                    (time(timeline_.end_of(period.after)) + time(out_time(period.tensor)))});
    }
    std::ranges::stable_sort(candidates, std::ranges::greater{}, &FreeTime::free_time);
    return candidates;
  }

  // The most bytes for a second of replaying. What was reckoned for a candidate before is at least what it gains now:
  // with more tensors away its chain of replays is longer or impossible.
  std::optional<Replay> best_replay() {
    if (!gains_) {
      gains_.emplace();
      for (std::size_t one = 0; one < candidates_.size(); ++one)
        if (const auto chain = chain_of(candidates_[one])) gains_->push({gain(candidates_[one], *chain), one});
    }
    while (!gains_->empty()) {
      const Gain best = gains_->top();
      const FreeTime& candidate = candidates_[best.candidate];
      auto chain = is_planned(candidate) ? std::nullopt : chain_of(candidate);
      const double now = chain ? gain(candidate, *chain) : 0;
      if (now == best.bytes_per_second) return Replay{best.candidate, *std::move(chain)};
      gains_->pop();
      if (chain) gains_->push({now, best.candidate});
    }
    return std::nullopt;
  }

  double gain(const FreeTime& one, const std::vector<KernelId>& chain) const {
    return static_cast<double>(bytes_of(one).value) / std::max(1e-9, seconds(time_of(chain, trace_)));
  }

  // What has been dropped has to be replayed, too; nothing that was swapped is read.
  std::optional<std::vector<KernelId>> chain_of(const FreeTime& one) const {
    const InactivePeriod& period = period_of(one);
    const auto is_away = [&](TensorId tensor) {
      const auto& dropped = dropped_[tensor.value];
      return tensor == period.tensor || (dropped && dropped->after < period.before && period.before < dropped->before);
    };
    const auto reads_swapped = [&](KernelId kernel) {
      return std::ranges::any_of(trace_[kernel].reads,
                                 [&](const Access& read) { return is_swapped_[read.tensor.value]; });
    };
    auto chain = chains_.chain(period.tensor, period.before, is_away);
    if (!chain || std::ranges::any_of(*chain, reads_swapped)) return std::nullopt;
    return chain;
  }

  void recompute(const InactivePeriod& period, std::vector<KernelId> chain) {
    dropped_[period.tensor.value] = period;
    for (const KernelId kernel : chain)
      for (const Access& read : trace_[kernel].reads) is_source_[read.tensor.value] = true;
    plan_.recomputations.push_back({period.tensor, period.after, period.before, std::move(chain)});
  }

  void swap(const InactivePeriod& period, std::int64_t free_time) {
    is_swapped_[period.tensor.value] = true;
    plan_.evictions.push_back({period.tensor, period.after, Tier::host, {}, false, {}});
    const Nanos has_left = timeline_.end_of(period.after) + out_time(period.tensor);
    const auto at = free_time >= 0 ? latest_trigger(period, has_left) : first_start_after(has_left);
    if (at && *at > period.after && *at < period.before)
      plan_.prefetches.push_back({period.tensor, *at, false, {}, {}});
  }

  // The last kernel from whose start on it comes in time, and while no other one comes.
  std::optional<KernelId> latest_trigger(const InactivePeriod& period, Nanos has_left) {
    const Nanos length = in_time(period.tensor), use = timeline_.start_of(period.before);
    const auto later = std::ranges::upper_bound(timeline_.start, excess(use, length));
    std::optional<KernelId> latest;
    for (auto start = later; start != timeline_.start.begin() && *std::prev(start) >= has_left;) {
      --start;
      const KernelId kernel{static_cast<std::uint32_t>(start - timeline_.start.begin())};
      if (!latest) latest = kernel;
      const Span span{*start, *start + length};
      const auto taken = arrivals_.in_the_way(span);
      if (!taken) {
        arrivals_.take(span);
        return kernel;
      }
      start = std::upper_bound(timeline_.start.begin(), start, excess(taken->begin, length));
    }
    return latest ? latest : first_start_after(has_left);
  }

  std::optional<KernelId> first_start_after(Nanos time) const {
    const auto first = std::ranges::lower_bound(timeline_.start, time);
    if (first == timeline_.start.end()) return std::nullopt;
    return KernelId{static_cast<std::uint32_t>(first - timeline_.start.begin())};
  }

  const Problem& problem_;
  const Trace& trace_;
  Timeline timeline_;
  ReplayChains chains_;
  std::vector<std::optional<InactivePeriod>> dropped_;  // by tensor
  std::vector<bool> is_source_;                         // by tensor: of a replay, so it stays where it is
  std::vector<bool> is_swapped_;
  std::vector<FreeTime> candidates_;
  std::optional<std::priority_queue<Gain>> gains_;  // once a replay was asked for
  TakenSpans arrivals_;
  Plan plan_;
};

}  // namespace

// Capuchin, as TENSILE (sections II and V-A) describes it and compares with it. Its first iteration has no plan.
Plan plan_capuchin(const Problem& problem) { return Choosing(problem).plan(); }

// What a kernel waited for is asked for earlier, but not before it has left.
std::optional<Plan> revise_capuchin(const PastIteration& iteration, const Plan& plan) {
  const auto& [trace, lifetimes, machine, parameters, waits] = iteration;
  const Timeline timeline = ideal_timeline(trace);
  std::vector<std::vector<KernelId>> evicted(trace.tensors.size());
  for (const Eviction& eviction : plan.evictions) evicted[eviction.tensor.value].push_back(eviction.after);
  Plan revised = plan;
  bool any = false;
  for (Prefetch& prefetch : revised.prefetches) {
    const auto& uses = lifetimes.tensors[prefetch.tensor.value].uses;
    const auto use = std::ranges::upper_bound(uses, prefetch.at);
    const auto& left = evicted[prefetch.tensor.value];
    const auto after = std::ranges::lower_bound(left, prefetch.at);
    if (use == uses.end() || after == left.begin()) continue;
    const Bytes bytes = trace[prefetch.tensor].bytes;
    const Nanos in = machine.link.latency + transfer_time(bytes, machine.link.to_device);
    const Nanos wait = waits[use->value];
    if (static_cast<double>(wait.value) <= kNoWait * static_cast<double>(in.value)) continue;
    const Nanos has_left =
        timeline.end_of(*std::prev(after)) + machine.link.latency + transfer_time(bytes, machine.link.from_device);
    const Nanos now = timeline.start_of(prefetch.at) + prefetch.delay;
    const Nanos step{static_cast<std::uint64_t>(kEarlier * static_cast<double>(in.value))};
    const Nanos wanted = std::max(excess(now, step), has_left);
    if (wanted >= now) continue;
    const auto later = std::ranges::upper_bound(timeline.start, wanted);
    if (later == timeline.start.begin()) continue;
    const KernelId kernel{static_cast<std::uint32_t>(later - timeline.start.begin() - 1)};
    if (kernel <= *std::prev(after)) continue;
    prefetch.at = kernel;
    prefetch.delay = wanted - timeline.start_of(kernel);
    any = true;
  }
  if (!any) return std::nullopt;
  std::ranges::stable_sort(revised.prefetches, {}, [](const Prefetch& one) { return std::pair(one.at, one.delay); });
  return revised;
}

}  // namespace spillway
