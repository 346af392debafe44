#include "timeline/planned_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "analysis/lifetimes.h"
#include "base/check.h"
#include "base/text.h"
#include "plan/recomputation.h"

namespace spillway {
namespace {

// A tensor moves bit by bit, so that its place becomes free bit by bit.
constexpr std::uint64_t kSteps = 16;

// Of one iteration after the other. The first leaves tensors where the second finds them, and that one leaves copies,
// too; the third is as all that follow, and drawn.
constexpr int kIterations = 3;

class PlannedMoves {
 public:
  PlannedMoves(const Plan& plan, const Trace& trace, const RunTimeline& ideal,
               const std::optional<MachineModel>& machine)
      : trace_(trace), lifetimes_(analyse_lifetimes(trace)), ideal_(ideal), machine_(machine) {
    states_.resize(trace.tensors.size());
    collect_steps(plan);
  }

  void lay(RunTimeline& result) {
    for (std::uint32_t t = 0; t < states_.size(); ++t)
      if (lifetimes_.tensors[t].alive_at_start) change({}, Tier::device, trace_.tensors[t].bytes, true);
    for (const Step& step : steps_) take(step);
    for (int before = 1; before < kIterations; ++before) {
      begin_ += ideal_.iteration;
      carry_over();
      late_.clear();
      if (before + 1 == kIterations)
        for (std::uint32_t t = 0; t < states_.size(); ++t)
          if (lifetimes_.tensors[t].alive_at_start) result.tensors[t].at_start = place_at_begin(t);
      for (const Step& step : steps_) take(step);
    }
    draw_transfers(result);
    draw_levels(result);
    say_what_cannot_be(result);
  }

 private:
  enum class What : std::uint8_t { birth, evict, prefetch, use, death };
  struct Step {
    Nanos at;
    What what;
    std::uint32_t place;  // of the tensor; of a use: of the kernel
    Tier to = Tier::device;
    bool keeps_copy = false;
  };
  struct State {
    Tier tier = Tier::device, before = Tier::device;  // of the last move
    Nanos there;                                      // when that is over
    std::optional<Tier> copy = {};                    // below
  };

  void collect_steps(const Plan& plan) {
    std::vector<std::vector<Step>> at_start(trace_.kernels.size()), at_end(trace_.kernels.size());
    for (const Prefetch& one : plan.prefetches) {
      const Nanos at = ideal_.kernels[one.at.value].start + one.delay;
      at_start[one.at.value].push_back({at, What::prefetch, one.tensor.value, Tier::device, one.keeps_copy});
    }
    for (const Eviction& one : plan.evictions) {
      const PlayedKernel& kernel = ideal_.kernels[one.after.value];
      const Nanos at = (one.during ? kernel.start : kernel.end) + one.delay;
      (one.during ? at_start : at_end)[one.after.value].push_back({at, What::evict, one.tensor.value, one.to});
    }
    for (std::uint32_t k = 0; k < trace_.kernels.size(); ++k) {
      const PlayedKernel& kernel = ideal_.kernels[k];
      for (const TensorId born : lifetimes_.births[k]) steps_.push_back({kernel.start, What::birth, born.value});
      steps_.push_back({kernel.start, What::use, k});
      steps_.insert(steps_.end(), at_start[k].begin(), at_start[k].end());
      for (const TensorId dead : lifetimes_.deaths[k]) steps_.push_back({kernel.end, What::death, dead.value});
      steps_.insert(steps_.end(), at_end[k].begin(), at_end[k].end());
    }
    std::ranges::stable_sort(steps_, {}, &Step::at);
  }

  void take(const Step& step) {
    const Nanos at = begin_ + step.at;
    if (step.what == What::use) return use(step.place, at);
    State& state = states_[step.place];
    const Bytes bytes = trace_.tensors[step.place].bytes;
    if (step.what == What::birth) {
      state = {.there = at};
      change(at, Tier::device, bytes, true);
    } else if (step.what == What::death) {
      change(std::max(at, state.there), state.tier, bytes, false);
      drop_copy(state, std::max(at, state.there), bytes);
    } else if (step.what == What::evict && state.tier == Tier::device) {
      move(step, state, at, step.to);
    } else if (step.what == What::prefetch && state.tier != Tier::device) {
      move(step, state, at, Tier::device);
    }
  }

  void use(std::uint32_t kernel, Nanos at) {
    Nanos late;
    for (const auto* tensors : {&ideal_.kernels[kernel].reads, &ideal_.kernels[kernel].writes})
      for (const TensorId tensor : *tensors)
        if (const State& state = states_[tensor.value]; state.tier == Tier::device)
          late = std::max(late, excess(state.there, at));
    if (late > Nanos{}) late_.push_back(late);
    for (const TensorId tensor : ideal_.kernels[kernel].writes)
      drop_copy(states_[tensor.value], at, trace_[tensor].bytes);
  }

  void drop_copy(State& state, Nanos at, Bytes bytes) {
    if (const auto copy = std::exchange(state.copy, std::nullopt))
      change(std::max(at, state.there), *copy, bytes, false);
  }

  void move(const Step& step, State& state, Nanos at, Tier to) {
    const Bytes bytes = trace_.tensors[step.place].bytes;
    const Tier from = state.tier;
    const bool is_copied = to == Tier::device || state.copy != to;
    if (is_copied) drop_copy(state, at, bytes);  // One on another tier is given up for this one.
    Nanos& free = free_[{from, to}];
    const Nanos begin = std::max({at, state.there, is_copied ? free : Nanos{}});
    const Nanos end = is_copied ? begin + time_of(bytes, from, to) : begin;
    if (is_copied) free = end;
    transfers_.push_back({.tensor = TensorId{step.place},
                          .bytes = bytes,
                          .from = from,
                          .to = to,
                          .urgency = Urgency::plan,
                          .queued = at,
                          .begin = begin,
                          .end = end,
                          .copied = is_copied});
    if (to == Tier::device) {
      fill(begin, end, bytes, Tier::device, true);
      if (!step.keeps_copy) fill(begin, end, bytes, from, false);
    } else {
      if (is_copied) change(begin, to, bytes, true);
      fill(begin, end, bytes, Tier::device, false);
    }
    state = {.tier = to, .before = from, .there = end};
    if (to == Tier::device && step.keeps_copy) state.copy = from;
  }

  // As if each way had its rate for itself.
  Nanos time_of(Bytes bytes, Tier from, Tier to) const {
    if (!machine_) return {};
    const bool up = to == Tier::device;
    const BytesPerSecond link = up ? machine_->link.to_device : machine_->link.from_device;
    if (from == Tier::host || to == Tier::host) return machine_->link.latency + transfer_time(bytes, link);
    const BytesPerSecond drive = up ? machine_->ssd_read() : machine_->ssd_write();
    return (up ? machine_->ssd.read_latency : machine_->ssd.write_latency) +
           transfer_time(bytes, {std::min(link.value, drive.value)});
  }

  void change(Nanos at, Tier tier, Bytes bytes, bool more) { changes_.push_back({at, tier, bytes, more}); }
  // Bit by bit: what comes takes its place before it moves, what goes leaves it behind.
  void fill(Nanos begin, Nanos end, Bytes bytes, Tier tier, bool more) {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      const Bytes part{bytes.value * (step + 1) / kSteps - bytes.value * step / kSteps};
      change(begin + Nanos{(end - begin).value * (step + (more ? 0 : 1)) / kSteps}, tier, part, more);
    }
  }

  // What an iteration leaves behind, the next one finds under other names.
  void carry_over() {
    std::vector<State> next = states_;
    for (std::uint32_t t = 0; t < states_.size(); ++t)
      if (const auto from = trace_.tensors[t].carried_from) next[t] = states_[from->value];
    states_ = std::move(next);
  }

  PerTier<Bytes> place_at_begin(std::uint32_t tensor) const {
    PerTier<Bytes> place;
    const State& state = states_[tensor];
    place[state.there > begin_ ? state.before : state.tier] = trace_.tensors[tensor].bytes;
    return place;
  }

  void draw_transfers(RunTimeline& result) const {
    const Nanos end = begin_ + ideal_.iteration;
    for (PlayedTransfer one : transfers_) {
      if (one.begin >= end || (one.begin < begin_ && one.end <= begin_)) continue;
      one.from_before = one.queued < begin_;
      one.goes_on = one.end > end;
      for (Nanos* at : {&one.queued, &one.begin, &one.end}) *at = excess(std::min(*at, end), begin_);
      result.transfers.push_back(one);
    }
    std::ranges::stable_sort(result.transfers, {}, &PlayedTransfer::begin);
  }

  void draw_levels(RunTimeline& result) {
    std::ranges::stable_sort(changes_, {}, &Change::at);
    std::vector<TierLevel> levels{{}};
    result.peak = {};
    PerTier<Bytes> now;
    for (const Change& one : changes_) {
      now[one.tier] = one.more ? now[one.tier] + one.bytes : excess(now[one.tier], one.bytes);
      if (one.at > begin_ + ideal_.iteration) break;
      const Nanos at = excess(one.at, begin_);
      if (at > levels.back().at) levels.push_back({at, now});
      levels.back().bytes = now;
    }
    for (const TierLevel& level : levels)
      for (const Tier tier : kTiers) result.peak[tier] = std::max(result.peak[tier], level.bytes[tier]);
    result.levels = thinned(levels, result.peak);
  }

  void say_what_cannot_be(RunTimeline& result) const {
    result.notes.emplace_back(
        "These are the plan's own moves, as if no kernel waited; `spillway simulate TRACE --plan FILE --timeline OUT` "
        "finds what happens.");
    if (!late_.empty())
      result.notes.push_back(fmt::format("{} kernel{} would start before what they use has come, by {} at most.",
                                         late_.size(), late_.size() == 1 ? "" : "s", to_text(std::ranges::max(late_))));
    for (const Tier tier : kTiers)
      if (const auto& most = result.capacity[tier]; most && result.peak[tier] > *most)
        result.notes.push_back(fmt::format("The {} would have to hold {} more than it can.", to_text(tier),
                                           to_text(result.peak[tier] - *most)));
  }

  struct Change {
    Nanos at;
    Tier tier;
    Bytes bytes;
    bool more;
  };
  const Trace& trace_;
  const Lifetimes lifetimes_;
  const RunTimeline& ideal_;
  const std::optional<MachineModel>& machine_;
  std::vector<Step> steps_;
  Nanos begin_;  // of the iteration
  std::vector<State> states_;
  std::map<std::pair<Tier, Tier>, Nanos> free_;  // since then, by way
  std::vector<PlayedTransfer> transfers_;
  std::vector<Change> changes_;
  std::vector<Nanos> late_;  // by how much, of kernels whose tensors come too late
};

}  // namespace

Result<RunTimeline> planned_timeline(const Plan& plan, const LoadedTrace& loaded,
                                     const std::optional<MachineModel>& machine) {
  TRY(const Recomputed program, with_recomputations(loaded.trace, plan, "plan"));
  const RunTimeline ideal = unlimited_timeline(program.trace, loaded.hash);
  RunTimeline result = ideal;
  for (std::uint32_t k = 0; k < result.kernels.size(); ++k) {
    result.kernels[k].kernel = program.original_of[k];
    result.kernels[k].is_replay = program.is_replay[k];
  }
  for (PlayedTensor& tensor : result.tensors) tensor.at_start = {};
  result.heading = fmt::format("as {} plans it for {}", plan.policy, plan.machine_name);
  if (machine)
    result.capacity = {
        .device = machine->device.memory, .host = machine->host_memory(), .ssd = machine->ssd_capacity()};
  PlannedMoves(program.plan, program.trace, ideal, machine).lay(result);
  return result;
}

}  // namespace spillway
