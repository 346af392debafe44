#include "policies/tensile.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include "analysis/timeline.h"
#include "base/check.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "policies/swap_channel.h"

namespace spillway {
namespace {

// Rounds after which little gain in several of them in a row ends the search (Algorithm 3).
constexpr std::size_t kRounds = 100, kPoorRounds = 3;
constexpr double kLittleGain = 0.0005;

struct Use {
  KernelId kernel;
  Span time;
  bool writes = false;
};

// A span of time in which a tensor is not on the device, between two uses; across the iteration's end `after` is the
// last use and `before` the first.
struct Absence {
  KernelId after, before;
  Span out, in;  // the transfers; a release without a copy has an empty one
};

struct Swapping {
  std::vector<Absence> absences;
  bool across = false;
  std::optional<Recomputation> recomputation;
  bool any() const { return !absences.empty() || recomputation.has_value(); }
};

struct Peak {
  Bytes bytes;
  Nanos time;
};

class Job {
 public:
  explicit Job(const Problem& problem)
      : problem_(problem),
        trace_(problem.trace),
        timeline_(ideal_timeline(problem.trace)),
        uses_(problem.trace.tensors.size()),
        busy_(problem.trace.tensors.size()),
        swapping_(problem.trace.tensors.size()),
        is_source_(problem.trace.tensors.size()) {
    for (std::uint32_t at = 0; at < trace_.kernels.size(); ++at) {
      const Span time{timeline_.start[at], timeline_.end[at]};
      const auto note = [&](const Access& access, bool writes) {
        auto& uses = uses_[access.tensor.value];
        if (uses.empty() || uses.back().kernel != KernelId{at}) {
          uses.push_back({{at}, time});
          if (time.begin < time.end) busy_[access.tensor.value].take(time);
        }
        uses.back().writes |= writes;
      };
      for (const Access& read : trace_.kernels[at].reads) note(read, false);
      for (const Access& write : trace_.kernels[at].writes) note(write, true);
    }
  }

  // What lies in host memory at some time.
  Bytes away() const { return away_; }
  Bytes bytes_of(TensorId tensor) const { return trace_[tensor].bytes; }

  // Algorithm 1: the most that is on the device at a time, and when first.
  Peak peak() {
    steps_.clear();
    for (std::uint32_t tensor = 0; tensor < trace_.tensors.size(); ++tensor)
      for_each_presence({tensor}, [&](Span there) {
        const auto bytes = static_cast<std::int64_t>(trace_.tensors[tensor].bytes.value);
        steps_.emplace_back(there.begin, bytes);
        steps_.emplace_back(there.end, -bytes);
      });
    std::ranges::sort(steps_);  // What is less comes first at the same time.
    std::int64_t now = 0, most = 0;
    Peak peak{};
    for (const auto& [time, bytes] : steps_) {
      now += bytes;
      if (now <= most) continue;
      most = now;
      peak = {Bytes{static_cast<std::uint64_t>(now)}, time};
    }
    return peak;
  }

  std::vector<TensorId> there_at(Nanos time) const {
    std::vector<TensorId> tensors;
    for (std::uint32_t tensor = 0; tensor < trace_.tensors.size(); ++tensor) {
      bool there = false;
      for_each_presence({tensor}, [&](Span span) { there |= span.begin <= time && time < span.end; });
      if (there) tensors.push_back({tensor});
    }
    return tensors;
  }

  // Algorithm 2 for one tensor. True if it is away at the peak now.
  bool swap(TensorId tensor, Nanos peak, Bytes room) {
    if (swapping_[tensor.value].any() || !may_move(tensor) || bytes_of(tensor) > room) return false;
    const double limit = problem_.parameters["swap-limit"] * static_cast<double>(trace_.tensors.size());
    const bool is_swapped =
        trace_[tensor].persistent ? swap_across(tensor, peak) : swapped_ + 1 <= limit && swap_within(tensor, peak);
    if (!is_swapped) return false;
    away_ += bytes_of(tensor);
    swapped_ += trace_[tensor].persistent ? 0 : 1;
    return true;
  }

  struct Replay {
    Recomputation command;
    double saved_per_second = 0;  // MSPS, equation 4
  };
  // The tensor's recomputation at the peak, if there is one.
  std::optional<Replay> replay_of(TensorId tensor, Nanos peak) const {
    if (swapping_[tensor.value].any() || !may_move(tensor) || trace_[tensor].persistent) return std::nullopt;
    const auto& uses = uses_[tensor.value];
    const auto next = std::ranges::find_if(uses, [&](const Use& use) { return use.time.begin >= peak; });
    if (next == uses.begin() || next == uses.end()) return std::nullopt;
    const Use& last = *std::prev(next);
    if (last.time.end > peak || last.kernel.value + 1 >= next->kernel.value) return std::nullopt;
    if (std::ranges::count_if(uses.begin(), next, &Use::writes) != 1 || !uses.front().writes) return std::nullopt;
    const KernelId producer = uses.front().kernel;
    const Kernel& kernel = trace_[producer];
    if (!kernel.replay || kernel.replay->leaves_out(tensor)) return std::nullopt;
    for (const Access& read : kernel.reads)
      if (!kernel.replay->leaves_out(read.tensor) && !is_as_then(read.tensor, producer, next->kernel))
        return std::nullopt;
    const double time = std::max(1e-9, seconds(kernel.duration));
    return Replay{{tensor, last.kernel, next->kernel, {producer}}, static_cast<double>(bytes_of(tensor).value) / time};
  }
  // What it reads stays where it is from now on.
  void recompute(const Replay& replay) {
    for (const KernelId kernel : replay.command.kernels)
      for (const Access& read : trace_[kernel].reads) is_source_[read.tensor.value] = true;
    swapping_[replay.command.tensor.value].recomputation = replay.command;
  }

  Plan plan() const {
    Plan plan;
    for (std::uint32_t tensor = 0; tensor < trace_.tensors.size(); ++tensor) {
      const Swapping& swapping = swapping_[tensor];
      for (const Absence& absence : swapping.absences) {
        const Trigger out = eviction_of(absence), in = prefetch_of(absence, out.kernel);
        plan.evictions.push_back({{tensor}, out.kernel, Tier::host, out.delay, false, {}});
        plan.prefetches.push_back({{tensor}, in.kernel, true, in.delay, {}});
      }
      if (swapping.recomputation) plan.recomputations.push_back(*swapping.recomputation);
    }
    std::ranges::stable_sort(plan.evictions, {}, [](const Eviction& one) { return std::pair(one.after, one.delay); });
    std::ranges::stable_sort(plan.prefetches, {}, [](const Prefetch& one) { return std::pair(one.at, one.delay); });
    std::ranges::stable_sort(plan.recomputations, {}, &Recomputation::drop_after);
    return plan;
  }

 private:
  struct Trigger {
    KernelId kernel;
    Nanos delay;
  };

  bool may_move(TensorId id) const {
    const Tensor& tensor = trace_[id];
    const Lifetime& life = problem_.lifetimes.tensors[id.value];
    if (tensor.bytes < kLeastMovedBytes || uses_[id.value].empty() || is_source_[id.value]) return false;
    return tensor.persistent || (!life.alive_at_start && !life.alive_at_end);
  }

  template <class F>
  void for_each_presence(TensorId id, F&& call) const {
    const Lifetime& life = problem_.lifetimes.tensors[id.value];
    const Swapping& swapping = swapping_[id.value];
    const Nanos end = timeline_.iteration;
    if (life.alive_at_start && life.alive_at_end && !trace_[id].persistent && life.death < life.birth) {
      call(Span{{}, timeline_.end_of(life.death)});
      return call(Span{timeline_.start_of(life.birth), end});
    }
    Nanos from = life.alive_at_start ? Nanos{} : timeline_.start_of(life.birth);
    const Nanos until = life.alive_at_end ? end : timeline_.end_of(life.death);
    Nanos last = until;
    for (const Absence& absence : swapping.absences) {
      if (absence.before <= absence.after) {  // across the iteration's end
        from = absence.in.end;
        last = absence.out.end;
      } else {
        call(Span{from, absence.out.end});
        from = absence.in.end;
      }
    }
    if (const auto& again = swapping.recomputation) {
      call(Span{from, timeline_.end_of(again->drop_after)});
      from = timeline_.start_of(again->before);
    }
    call(Span{from, last});
  }

  Nanos time_out(TensorId tensor) const {
    return problem_.machine.link.latency + transfer_time(bytes_of(tensor), problem_.machine.link.from_device);
  }
  Nanos time_in(TensorId tensor) const {
    return problem_.machine.link.latency + transfer_time(bytes_of(tensor), problem_.machine.link.to_device);
  }

  // Steps 1 to 3.
  bool swap_within(TensorId tensor, Nanos peak) {
    const auto& uses = uses_[tensor.value];
    auto& absences = swapping_[tensor.value].absences;
    for (Nanos earliest = uses.front().time.end; earliest < peak;) {
      const auto out = first_free({earliest, peak}, time_out(tensor), channel_, busy_[tensor.value]);
      if (!out) return false;
      const auto next = std::ranges::find_if(uses, [&](const Use& use) { return use.time.begin >= out->end; });
      if (next == uses.end()) return false;
      earliest = next->time.end;
      if (next->time.begin <= peak) continue;  // It would be there again.
      channel_.take(*out);
      const auto in = last_free({out->end, next->time.begin}, time_in(tensor), channel_, busy_[tensor.value]);
      const Absence absence{std::prev(next)->kernel, next->kernel, *out, in.value_or(Span{})};
      if (!in || eviction_of(absence).kernel.value + 1 >= absence.before.value) {
        channel_.free(*out);
        continue;
      }
      channel_.take(*in);
      absences.push_back(absence);
      release_later(tensor, next);
      return true;
    }
    return false;
  }

  // Step 5: what outlives the iteration leaves after its last use, and comes back for its first one.
  bool swap_across(TensorId tensor, Nanos peak) {
    const auto& uses = uses_[tensor.value];
    const Use &first = uses.front(), &last = uses.back();
    auto& absences = swapping_[tensor.value].absences;
    const std::uint32_t between =
        first.kernel.value + static_cast<std::uint32_t>(trace_.kernels.size()) - last.kernel.value;
    if (between < 2 || first.kernel.value == 0) return false;
    const auto out = first_free({last.time.end, timeline_.iteration}, time_out(tensor), channel_, busy_[tensor.value]);
    if (!out) return false;
    channel_.take(*out);
    const auto in = last_free({{}, first.time.begin}, time_in(tensor), channel_, busy_[tensor.value]);
    if (!in) {
      channel_.free(*out);
      return false;
    }
    channel_.take(*in);
    absences.push_back({last.kernel, first.kernel, *out, *in});
    release_later(tensor, uses.begin());
    bool is_there = false;
    for_each_presence(tensor, [&](Span span) { is_there |= span.begin <= peak && peak < span.end; });
    if (!is_there) return true;
    for (const Absence& absence : absences) {
      if (absence.out.begin < absence.out.end) channel_.free(absence.out);
      channel_.free(absence.in);
    }
    absences.clear();
    return false;
  }

  // Step 4: as long as nobody writes, its copy stays in host memory, so it can go at once after a use and come back for
  // the next one.
  void release_later(TensorId tensor, std::vector<Use>::const_iterator use) {
    if (problem_.machine.host.keeps_copies == 0) return;
    const auto& uses = uses_[tensor.value];
    for (; !use->writes && std::next(use) != uses.end(); ++use) {
      const auto next = std::next(use);
      if (use->kernel.value + 1 >= next->kernel.value) continue;
      const auto in = last_free({use->time.end, next->time.begin}, time_in(tensor), channel_, busy_[tensor.value]);
      if (!in) continue;
      channel_.take(*in);
      swapping_[tensor.value].absences.push_back({use->kernel, next->kernel, {use->time.end, use->time.end}, *in});
    }
  }

  // Whether the tensor has the bytes that `reader` found when `later` starts, and is there then.
  bool is_as_then(TensorId tensor, KernelId reader, KernelId later) const {
    if (swapping_[tensor.value].any()) return false;
    if (problem_.lifetimes.tensors[tensor.value].is_dead_before(later)) return false;
    return std::ranges::none_of(
        uses_[tensor.value], [&](const Use& use) { return use.writes && reader <= use.kernel && use.kernel < later; });
  }

  // The boundaries nearest before the transfers, and the time from there.
  Trigger eviction_of(const Absence& absence) const {
    if (absence.out.begin == absence.out.end) return {absence.after, {}};  // Kernels of no time may come at its end.
    const auto later = std::ranges::upper_bound(timeline_.end, absence.out.begin);
    CHECK(later != timeline_.end.begin());
    const auto at = static_cast<std::uint32_t>(later - timeline_.end.begin() - 1);
    const KernelId kernel = std::max(KernelId{at}, absence.after);
    return {kernel, excess(absence.out.begin, timeline_.end_of(kernel))};
  }
  Trigger prefetch_of(const Absence& absence, KernelId evicted_after) const {
    const auto later = std::ranges::upper_bound(timeline_.start, absence.in.begin);
    std::uint32_t at =
        later == timeline_.start.begin() ? 0 : static_cast<std::uint32_t>(later - timeline_.start.begin() - 1);
    if (absence.before > absence.after) at = std::max(at, evicted_after.value + 1);
    return {{at}, excess(absence.in.begin, timeline_.start[at])};
  }

  const Problem& problem_;
  const Trace& trace_;
  Timeline timeline_;
  std::vector<std::vector<Use>> uses_;  // by tensor
  std::vector<TakenSpans> busy_;        // by tensor: its uses
  std::vector<Swapping> swapping_;      // by tensor
  std::vector<bool> is_source_;         // by tensor: of a replay
  TakenSpans channel_;
  Bytes away_;
  double swapped_ = 0;
  std::vector<std::pair<Nanos, std::int64_t>> steps_;
};

struct AtPeak {
  std::size_t job;
  TensorId tensor;
  Bytes bytes;
};

}  // namespace

// Algorithm 3: each round finds the peak anew, and takes the largest tensor there that can be swapped; where none can
// and the peak does not fit, the one that is recomputed in the least time a byte. The paper's rounds analyse all
// tensors, so they are quadratic, and so are ours: a round is a sort.
std::vector<Plan> plan_tensile_jobs(std::span<const Problem> problems) {
  std::vector<Job> jobs(problems.begin(), problems.end());
  const MachineModel& machine = problems.front().machine;
  Bytes alive;
  for (const Problem& problem : problems) alive += std::ranges::max(problem.lifetimes.live);
  const bool shrinks = problems.front().parameters.is_on("shrink");
  const bool is_needed = shrinks || alive >= machine.device.memory;
  const auto room = [&] {
    Bytes away;
    for (const Job& job : jobs) away += job.away();
    return excess(machine.host_memory(), away);
  };
  Bytes before;
  for (std::size_t round = 0, poor = 0; is_needed; ++round) {
    std::vector<Peak> peaks;
    Bytes now;
    for (Job& job : jobs) now += peaks.emplace_back(job.peak()).bytes;
    const double gain = before == Bytes{} ? 1 : 1 - static_cast<double>(now.value) / static_cast<double>(before.value);
    poor = gain < kLittleGain ? poor + 1 : 0;
    before = now;
    if (round > kRounds && poor >= kPoorRounds) break;
    std::vector<AtPeak> there;
    for (std::size_t job = 0; job < jobs.size(); ++job)
      for (const TensorId tensor : jobs[job].there_at(peaks[job].time))
        there.push_back({job, tensor, jobs[job].bytes_of(tensor)});
    std::ranges::stable_sort(there, std::ranges::greater{}, &AtPeak::bytes);
    const auto swap = [&](const AtPeak& one) { return jobs[one.job].swap(one.tensor, peaks[one.job].time, room()); };
    if (std::ranges::any_of(there, swap)) continue;
    if (now < machine.device.memory) break;
    std::optional<std::pair<std::size_t, Job::Replay>> best;
    for (const AtPeak& one : there)
      if (const auto replay = jobs[one.job].replay_of(one.tensor, peaks[one.job].time))
        if (!best || best->second.saved_per_second < replay->saved_per_second) best = {one.job, *replay};
    if (!best) break;
    jobs[best->first].recompute(best->second);
  }
  std::vector<Plan> plans;
  for (const Job& job : jobs) plans.push_back(job.plan());
  return plans;
}

Plan plan_tensile(const Problem& problem) { return plan_tensile_jobs({&problem, 1}).front(); }

}  // namespace spillway
