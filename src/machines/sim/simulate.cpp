#include "machines/sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "executor/executor.h"
#include "executor/online_policy.h"
#include "machines/sim/layout.h"
#include "machines/sim/links.h"
#include "machines/sim/pool.h"
#include "machines/sim/sim_machine.h"
#include "machines/sim/sim_setup.h"
#include "machines/sim/timeline_recorder.h"
#include "plan/recomputation.h"

namespace spillway {
namespace {

constexpr std::uint32_t kMostIterations = 20;
constexpr std::uint32_t kMeanOf = 10;
constexpr double kSteadyWithin = 1e-4;
constexpr std::uint64_t kMostTouches = std::uint64_t{1} << 30;  // of blocks in an iteration: 2 PiB

// The cold start: in the order of their first use, tensors that outlive iterations are on the device as far as they fit
// beside the largest working set (all of them if nothing ever has to leave), the rest in host memory, then on the SSD;
// a tensor that no tier holds whole is spread over them, and what the lower tiers have no room for takes the room of
// the working set.
struct Placement {
  std::vector<std::optional<Tier>> tiers;  // by block; nothing for blocks without bytes
  Bytes missing;                           // what fits nowhere
};
Placement cold_placement(const Trace& trace, const Lifetimes& lifetimes, const Layout& layout,
                         PerTier<Bytes> capacity) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> present;  // first use, tensor
  for (std::uint32_t tensor = 0; tensor < trace.tensors.size(); ++tensor)
    if (const Lifetime& life = lifetimes.tensors[tensor]; life.alive_at_start)
      present.emplace_back(life.uses.empty() ? UINT32_MAX : life.uses.front().value, tensor);
  std::ranges::sort(present);
  const bool all_fits = std::ranges::max(lifetimes.live) <= capacity.device;
  Bytes spare = all_fits ? Bytes{} : std::min(std::ranges::max(lifetimes.working_set), capacity.device);
  PerTier<Bytes> room{capacity.device - spare, capacity.host, capacity.ssd};
  Placement placement{.tiers = std::vector<std::optional<Tier>>(layout.block_bytes.size()), .missing = {}};
  auto& placed = placement.tiers;
  for (const auto& [first_use, tensor] : present) {
    const BlockRange blocks = layout.tensors[tensor];
    Bytes bytes;
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
      if (!placed[block.value]) bytes += layout.block_bytes[block.value];
    const auto tier_for = [&](Bytes wanted) {
      return std::ranges::find_if(kTiers, [&](Tier candidate) { return room[candidate] >= wanted; });
    };
    const auto whole = tier_for(bytes);
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
      if (placed[block.value]) continue;
      const Bytes size = layout.block_bytes[block.value];
      auto tier = whole != kTiers.end() ? whole : tier_for(size);
      if (tier == kTiers.end()) {
        room.device += std::exchange(spare, {});
        tier = tier_for(size);
      }
      if (tier == kTiers.end()) {
        placement.missing += size;
        continue;
      }
      room[*tier] -= size;
      placed[block.value] = *tier;
    }
  }
  return placement;
}

PageTable page_table(const Layout& layout, const std::vector<std::optional<Tier>>& placed, PerTier<Bytes> capacity) {
  PageTable table(capacity);
  for (std::uint32_t block = 0; block < layout.block_bytes.size(); ++block) {
    table.add_blocks(1, layout.block_bytes[block]);
    if (placed[block]) table.place({block}, *placed[block]);
  }
  return table;
}

std::uint64_t blocks_at_most(const Trace& trace) {
  std::uint64_t blocks = 0;
  for (const Tensor& tensor : trace.tensors) blocks += tensor.bytes.value / kBlockBytes.value + 1;
  return blocks;
}

std::uint64_t touches(const Trace& trace, const Layout& layout, bool whole_tensors) {
  std::uint64_t sum = 0;
  for (const Kernel& kernel : trace.kernels)
    for (const BlockAccess& access : layout.accesses(trace, kernel, whole_tensors)) sum += access.blocks.count;
  return sum;
}

// "pool" and "invalidate" are parameters of policies, as far as they have them.
SimMachine::Tensors tensors_of(const PolicyTraits& traits) {
  const auto is_on = [&](std::string_view name) {
    return traits.parameters.has(name) && traits.parameters.is_on(name);
  };
  if (!is_on("pool")) return SimMachine::Tensors::in_their_own;
  return is_on("invalidate") ? SimMachine::Tensors::in_pool : SimMachine::Tensors::in_pool_dead_stays;
}

// What is measured of one iteration.
struct Measured {
  Nanos time;
  std::uint64_t residency = 0;
  std::uint64_t stalled_kernels = 0, faults = 0;
  Nanos hidden;
  PerLink<Bytes> moved;
  Bytes dropped_clean;
  FlashWork flash;
};

template <class F>
void for_each_link(F&& call) {
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to) call(from, to);
}

PerLink<Bytes> difference(const PerLink<Bytes>& now, const PerLink<Bytes>& before) {
  PerLink<Bytes> result;
  for_each_link([&](Tier from, Tier to) { result(from, to) = now(from, to) - before(from, to); });
  return result;
}

bool same(const Measured& a, const Measured& b) {
  const double longer = static_cast<double>(std::max(a.time, b.time).value);
  const double apart = longer - static_cast<double>(std::min(a.time, b.time).value);
  return a.residency == b.residency && apart <= kSteadyWithin * longer;
}

// Tensor by tensor, since tensors that are carried under another id change their blocks.
std::uint64_t residency(const PageTable& table, const Layout& layout) {
  std::uint64_t hash = 0;
  for (const BlockRange& blocks : layout.tensors) hash = table.residency_hash(blocks, hash);
  return hash;
}

Measured mean_of_last(const std::vector<Measured>& all) {
  const std::size_t count = std::min<std::size_t>(kMeanOf, all.size());
  Measured sum;
  for (std::size_t at = all.size() - count; at < all.size(); ++at) {
    sum.time += all[at].time;
    sum.stalled_kernels += all[at].stalled_kernels;
    sum.faults += all[at].faults;
    sum.hidden += all[at].hidden;
    sum.dropped_clean += all[at].dropped_clean;
    sum.flash += all[at].flash;
    for_each_link([&](Tier from, Tier to) { sum.moved(from, to) += all[at].moved(from, to); });
  }
  sum.time.value /= count;
  sum.stalled_kernels /= count;
  sum.faults /= count;
  sum.hidden.value /= count;
  sum.dropped_clean.value /= count;
  sum.flash = {sum.flash.written / count, sum.flash.moved / count, sum.flash.erased / count};
  for_each_link([&](Tier from, Tier to) { sum.moved(from, to).value /= count; });
  return sum;
}

FlashWear wear_of(const MachineModel& machine, const FlashGeometry& geometry, const Measured& final, FlashWork all) {
  const auto bytes_of = [&](std::uint64_t pages) { return geometry.page * pages; };
  const auto part_of = [&](const FlashWork& work) {
    return FlashWear::Part{.host_written = bytes_of(work.written),
                           .written = bytes_of(work.written + work.moved),
                           .erases = work.erased,
                           .write_amplification = work.write_amplification()};
  };
  FlashWear wear{.iteration = part_of(final.flash), .all = part_of(all), .years = {}};
  if (wear.iteration.written > Bytes{})
    wear.years = years_at(machine, static_cast<double>(wear.iteration.written.value) / seconds(final.time));
  return wear;
}

constexpr PlanId kThePlan{1};

std::shared_ptr<FollowedPlan> followed(const Plan& plan, const Trace& trace) {
  auto result = std::make_shared<FollowedPlan>();
  result->id = kThePlan;
  result->kernels = static_cast<std::uint32_t>(trace.kernels.size());
  result->commands = plan;
  return result;
}

// Each tensor that keeps its blocks is a row of its own.
void add_iteration(FollowedPlan& known, const Trace& trace, const Lifetimes& lifetimes, const Layout& layout) {
  known.homes = layout.tensors;
  std::vector<bool> keeps_blocks(trace.tensors.size(), true);
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (const auto& from = trace.tensors[t].carried_from; from && *from != TensorId{t})
      keeps_blocks[t] = keeps_blocks[from->value] = false;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (const auto& uses = lifetimes.tensors[t].uses; keeps_blocks[t] && !uses.empty())
      known.rows.push_back({layout.tensors[t], {uses.begin(), uses.end()}});
  for (const auto& born : lifetimes.births) {
    auto& kernel = known.births.emplace_back();
    for (const TensorId tensor : born)
      if (keeps_blocks[tensor.value]) kernel.push_back(layout.tensors[tensor.value]);
  }
}

// The ideal iteration is the one without replays.
Result<SimulationResult> simulate_recomputing(const Trace& trace, const MachineModel& machine,
                                              const PolicyTraits& traits, const Plan& plan, RunTimeline* timeline) {
  TRY(const Recomputed program, with_recomputations(trace, plan, "plan"));
  TRY(SimulationResult result, simulate(program.trace, analyse_lifetimes(program.trace), machine, traits, &program.plan,
                                        Foreknowledge::commands, timeline));
  result.ideal = excess(result.ideal, program.replaying);
  result.recomputed_kernels = program.replays();
  result.recompute = program.replaying;
  for (std::uint32_t at = 0; at < result.kernels.size(); ++at) {
    result.kernels[at].kernel = program.original_of[at];
    result.kernels[at].is_replay = program.is_replay[at];
  }
  for (std::uint32_t at = 0; timeline != nullptr && at < timeline->kernels.size(); ++at) {
    timeline->kernels[at].kernel = program.original_of[at];
    timeline->kernels[at].is_replay = program.is_replay[at];
  }
  if (timeline != nullptr) timeline->ideal = result.ideal;
  if (traits.plans_from_second) {
    TRY(const SimulationResult passive, simulate(trace, analyse_lifetimes(trace), machine, traits, nullptr));
    result.cold_iteration = passive.cold_iteration;
  }
  if (!traits.revise || !result.feasible) return result;
  // What it reckons with is of the program as it was. What that one's kernels would have waited for, nobody knows.
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  const std::vector<Nanos> no_waits(trace.kernels.size());
  const auto better = traits.revise({trace, lifetimes, machine, traits.parameters, no_waits}, plan);
  if (!better) return result;
  TRY(SimulationResult after, simulate(trace, lifetimes, machine, traits, &*better, Foreknowledge::commands, timeline));
  after.cold_iteration = result.cold_iteration;
  return after;
}

}  // namespace

PerTier<Bytes> shortfall(const Lifetimes& lifetimes, const MachineModel& machine, const PolicyTraits& traits) {
  const PerTier<Bytes> limits = capacity(machine, traits);
  PerTier<Bytes> missing;
  if (!traits.kernels_fault) missing.device = excess(std::ranges::max(lifetimes.working_set), limits.device);
  (traits.uses_ssd ? missing.ssd : missing.host) =
      excess(std::ranges::max(lifetimes.live), limits.device + limits.host + limits.ssd);
  return missing;
}

Result<SimulationResult> simulate(const Trace& trace, const Lifetimes& lifetimes, const MachineModel& machine,
                                  const PolicyTraits& traits, const Plan* plan, Foreknowledge foreknowledge,
                                  RunTimeline* timeline) {
  if (plan != nullptr && !plan->recomputations.empty())
    return simulate_recomputing(trace, machine, traits, *plan, timeline);
  SimulationResult result;
  for (const Kernel& kernel : trace.kernels) result.ideal += kernel.gap + kernel.duration;
  result.shortfall = shortfall(lifetimes, machine, traits);
  result.feasible = result.shortfall == PerTier<Bytes>{};
  if (!result.feasible) return result;

  const PerTier<Bytes> limits = capacity(machine, traits);
  const auto too_many_blocks = [&] {
    return fail(Errc::bad_input,
                fmt::format("cannot simulate {}: it is too large, its tensors take more than {} blocks of {}; record a "
                            "smaller program",
                            trace.name, kMostBlocks, to_text(kBlockBytes)));
  };
  if (blocks_at_most(trace) > kMostBlocks) return too_many_blocks();
  const SimMachine::Tensors tensors = tensors_of(traits);
  Layout layout = tensors == SimMachine::Tensors::in_their_own ? plain_layout(trace)
                                                               : pooled_layout(trace, lifetimes, kMostIterations);
  if (layout.block_bytes.size() > kMostBlocks) return too_many_blocks();
  if (touches(trace, layout, !traits.kernels_fault) > kMostTouches)
    return fail(
        Errc::bad_input,
        fmt::format("cannot simulate {}: it is too large, its kernels touch more than {} blocks of {}; record a "
                    "smaller program",
                    trace.name, kMostTouches, to_text(kBlockBytes)));
  if (traits.kernels_fault && !traits.unlimited_device) {
    // A block can come only if another one, which the instruction may need, too, can stay.
    Bytes largest, all;
    for (const Bytes bytes : layout.block_bytes) {
      largest = std::max(largest, bytes);
      all += bytes;
    }
    result.shortfall.device = excess(std::min(largest * 2, all), limits.device);
    result.feasible = result.shortfall.device == Bytes{};
    if (!result.feasible) return result;
  }
  if (!traits.kernels_fault) {
    // Small tensors share blocks, which are larger than what the kernel uses of them.
    result.shortfall.device = excess(largest_working_set(trace, layout), limits.device);
    result.feasible = result.shortfall.device == Bytes{};
    if (!result.feasible) return result;
  }
  const Placement placed = cold_placement(trace, lifetimes, layout, limits);
  if (placed.missing > Bytes{}) {
    // The tiers would hold all bytes, but not in whole blocks.
    result.feasible = false;
    (traits.uses_ssd ? result.shortfall.ssd : result.shortfall.host) = placed.missing;
    return result;
  }
  Executor executor(page_table(layout, placed.tiers, limits), executor_options(machine, traits),
                    traits.online ? traits.online(limits.device, traits.parameters) : nullptr);
  std::vector<Command> commands;
  const auto adopt = [&](const Plan& adopted, const Layout& where) {
    const auto follow = followed(adopted, trace);
    if (foreknowledge == Foreknowledge::iteration) add_iteration(*follow, trace, lifetimes, where);
    executor.on(Adopted{follow}, commands);
  };
  std::optional<Plan> revised;
  std::optional<std::pair<Nanos, Plan>> before_revision;  // the last one: what an iteration took, under which plan
  bool may_revise = traits.revise != nullptr;
  if (plan != nullptr && !traits.plans_from_second) {
    adopt(*plan, layout);
    revised = *plan;
  }
  TRY(const SimHardware hardware, hardware_of(machine));
  SimMachine sim(trace, lifetimes, std::move(layout), hardware, placed.tiers, !traits.kernels_fault, kThePlan, tensors);

  std::vector<Measured> measured;
  PerLink<Bytes> moved_before;
  Bytes dropped_before;
  FlashWork flash_before;
  std::optional<TimelineRecorder> recorder;
  if (timeline != nullptr) recorder.emplace(trace, lifetimes);
  const auto begin_iteration = [&] {
    sim.begin_iteration();
    if (recorder) recorder->begin_iteration(sim.iterations().back().begin, sim.layout(), executor.table());
  };
  begin_iteration();
  for (;;) {
    const Result<Stamped> event = sim.wait();
    if (!event) return std::unexpected(event.error());
    commands.clear();
    if (recorder) recorder->told(*event);
    executor.on(event->what, commands);
    if (recorder) recorder->asked(event->at, commands, executor.table());
    if (const auto& failure = executor.failure()) {
      // Blocks in flight count twice, so a run may fail though everything would just fit.
      result.feasible = false;
      const Tier tier = failure->kind == Failure::Kind::device_too_small ? Tier::device
                        : traits.uses_ssd                                ? Tier::ssd
                                                                         : Tier::host;
      result.shortfall[tier] = failure->bytes;
      return result;
    }
    sim.submit(commands);
    if (!sim.iteration_over()) continue;
    sim.check_flash();
    const IterationRecord& record = sim.iterations().back();
    measured.push_back({.time = record.end - record.begin,
                        .residency = residency(executor.table(), sim.layout()),
                        .stalled_kernels = record.stalled_kernels,
                        .faults = record.faults,
                        .hidden = record.hidden,
                        .moved = difference(executor.moved(), moved_before),
                        .dropped_clean = executor.dropped_clean() - dropped_before,
                        .flash = record.flash - flash_before});
    flash_before = record.flash;
    moved_before = executor.moved();
    dropped_before = executor.dropped_clean();
    result.steady = measured.size() >= 2 && same(measured.back(), measured[measured.size() - 2]);
    const bool begins = plan != nullptr && traits.plans_from_second && measured.size() == 1;
    if (begins) revised = *plan;
    std::optional<Plan> better;
    const bool is_worse = traits.takes_back && before_revision && measured.back().time > before_revision->first;
    if (is_worse) {  // It stays with the plan that it had.
      better = before_revision->second;
      may_revise = false;
    } else if (revised && !begins && may_revise && measured.size() + kMeanOf / 2 < kMostIterations) {
      better = traits.revise({trace, lifetimes, machine, traits.parameters, sim.waits()}, *revised);
    }
    before_revision.reset();
    if (better && !better->recomputations.empty()) {  // That is another program, so it begins anew.
      TRY(SimulationResult after, simulate_recomputing(trace, machine, traits, *better, timeline));
      after.cold_iteration = measured.front().time;
      return after;
    }
    if (begins || better) {
      if (better && !is_worse) before_revision = {measured.back().time, *revised};
      if (better) revised = *better;
      commands.clear();
      adopt(*revised, sim.layout());
      if (recorder) recorder->asked(sim.iterations().back().end, commands, executor.table());
      sim.submit(commands);
      result.steady = false;
    }
    if (result.steady || measured.size() == kMostIterations) break;
    begin_iteration();
  }

  const Measured final = result.steady ? measured.back() : mean_of_last(measured);
  result.iteration = final.time;
  result.cold_iteration = measured.front().time;
  result.stalled_kernels = final.stalled_kernels;
  result.faults = final.faults;
  result.hidden = final.hidden;
  result.moved = final.moved;
  result.dropped_clean = final.dropped_clean;
  result.iterations = static_cast<std::uint32_t>(measured.size());
  result.warmup_iterations = result.iterations - (result.steady ? 1 : kMeanOf);
  for (const Tier tier : kTiers) result.peak[tier] = executor.table().peak(tier);
  result.skipped_commands = executor.skipped_commands();
  for (std::uint32_t at = 0; at < trace.kernels.size(); ++at)
    result.kernels.push_back({.kernel = {at},
                              .is_replay = false,
                              .duration = trace.kernels[at].duration,
                              .wait = sim.waits()[at],
                              .hidden = sim.hidden()[at]});
  if (recorder) {
    *timeline = recorder->finish(sim.iterations().back().end, sim.waits());
    timeline->steady = result.steady;
    timeline->ideal = result.ideal;
    for (const Tier tier : kTiers)
      if (!traits.unlimited_device) timeline->capacity[tier] = limits[tier];
  }
  if (hardware.flash) result.flash = wear_of(machine, *hardware.flash, final, sim.iterations().back().flash);
  return result;
}

}  // namespace spillway
