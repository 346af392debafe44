#include "machines/sim/simulate_jobs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "executor/executor.h"
#include "executor/followed_plan.h"
#include "executor/online_policy.h"
#include "machines/sim/sim_machine.h"
#include "machines/sim/sim_setup.h"

namespace spillway {
namespace {

// All jobs in one space of blocks, tensors and kernels.
struct Together {
  std::vector<SimJob> jobs;
  std::vector<Bytes> block_bytes;
  std::uint32_t kernels = 0, tensors = 0;
};

Together joined(const std::vector<DeviceJob>& jobs) {
  Together all;
  for (const DeviceJob& job : jobs) {
    Layout layout = plain_layout(job.trace);
    const auto first_block = static_cast<std::uint32_t>(all.block_bytes.size());
    for (BlockRange& blocks : layout.tensors) blocks.first.value += first_block;
    all.block_bytes.insert(all.block_bytes.end(), layout.block_bytes.begin(), layout.block_bytes.end());
    all.jobs.push_back({.trace = job.trace,
                        .lifetimes = job.lifetimes,
                        .layout = std::move(layout),
                        .first_tensor = all.tensors,
                        .first_kernel = all.kernels,
                        .weight = job.weight,
                        .arrival = job.arrival,
                        .iterations = job.iterations});
    all.tensors += static_cast<std::uint32_t>(job.trace.tensors.size());
    all.kernels += static_cast<std::uint32_t>(job.trace.kernels.size());
  }
  return all;
}

// The plans of those that are there as one.
Plan joined(const std::vector<Plan>& plans, const std::vector<PresentJob>& present,
            const std::vector<SimProgram>& all) {
  Plan plan;
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const SimJob& job = all[present[at].job].job;
    for (Eviction eviction : plans[at].evictions) {
      eviction.tensor.value += job.first_tensor;
      eviction.after.value += job.first_kernel;
      if (eviction.awaited_by) eviction.awaited_by->value += job.first_kernel;
      plan.evictions.push_back(eviction);
    }
    for (Prefetch prefetch : plans[at].prefetches) {
      prefetch.tensor.value += job.first_tensor;
      prefetch.at.value += job.first_kernel;
      if (prefetch.awaited_by) prefetch.awaited_by->value += job.first_kernel;
      plan.prefetches.push_back(prefetch);
    }
  }
  std::ranges::stable_sort(plan.evictions, {}, &Eviction::after);
  std::ranges::stable_sort(plan.prefetches, {}, &Prefetch::at);
  return plan;
}

std::vector<PresentJob> present_in(const SimMachine& sim) {
  std::vector<PresentJob> present;
  for (std::size_t job = 0; job < sim.programs().size(); ++job) {
    const SimProgram& program = sim.programs()[job];
    if (program.step == SimProgram::Step::away) continue;
    const bool has_measured = program.iterations.size() > 1;
    present.push_back({job, has_measured});
  }
  return present;
}

JobResult result_of(const SimProgram& program) {
  Nanos all, waited;
  for (const IterationRecord& iteration : program.iterations) {
    all += iteration.end - iteration.begin;
    waited += iteration.waited;
  }
  const std::uint64_t count = program.iterations.size();
  const IterationRecord& first = program.iterations.front();
  return {.first_iteration = first.end - first.begin,
          .mean_iteration = {all.value / count},
          .stall = {waited.value / count},
          .peak = program.peak};
}

}  // namespace

Nanos JobsResult::mean_iteration() const {
  Nanos sum;
  for (const JobResult& job : jobs) sum += job.mean_iteration;
  return {sum.value / std::max<std::size_t>(1, jobs.size())};
}

JobsCost cost_of(const JobsResult& with_policy, const JobsResult& without) {
  const double without_peak = static_cast<double>(without.device_peak.value);
  JobsCost cost;
  cost.memory_saving_ratio = (without_peak - static_cast<double>(with_policy.device_peak.value)) / without_peak;
  cost.extra_overhead_ratio = seconds(with_policy.mean_iteration()) / seconds(without.mean_iteration());
  cost.cost_benefit_ratio = cost.memory_saving_ratio / cost.extra_overhead_ratio;
  return cost;
}

Result<JobsResult> simulate_jobs(const std::vector<DeviceJob>& jobs, const MachineModel& machine,
                                 const PolicyTraits& traits, const PlanJobs& plan) {
  JobsResult result;
  const PerTier<Bytes> limits = capacity(machine, traits);
  Together all = joined(jobs);
  if (all.block_bytes.size() > kMostBlocks)
    return fail(Errc::bad_input,
                "cannot simulate these jobs: together they are too large; simulate fewer or smaller ones");
  for (const SimJob& job : all.jobs) {
    Bytes least{};
    if (!traits.kernels_fault) {
      Layout layout = job.layout;
      layout.block_bytes = all.block_bytes;
      least = largest_working_set(job.trace, layout);
    } else {
      least = kBlockBytes * 2;  // One comes only if another one, which the instruction may need, can stay.
    }
    result.shortfall.device = std::max(result.shortfall.device, excess(least, limits.device));
  }
  result.feasible = result.shortfall == PerTier<Bytes>{};
  if (!result.feasible) return result;

  PageTable table(limits);
  for (const Bytes bytes : all.block_bytes) table.add_blocks(1, bytes);
  Executor executor(std::move(table), executor_options(machine, traits),
                    traits.online ? traits.online(limits.device, traits.parameters) : nullptr);
  TRY(const SimHardware hardware, hardware_of(machine));
  const std::uint32_t kernels = all.kernels;
  SimMachine sim(std::move(all.jobs), std::move(all.block_bytes), hardware, !traits.kernels_fault);
  std::vector<Command> commands;
  std::uint32_t plans = 0;
  while (!sim.all_have_left()) {
    TRY(const Stamped event, sim.wait());
    commands.clear();
    executor.on(event.what, commands);
    if (const auto& failure = executor.failure()) {
      const Tier tier = failure->kind == Failure::Kind::device_too_small ? Tier::device
                        : traits.uses_ssd                                ? Tier::ssd
                                                                         : Tier::host;
      result.feasible = false;
      result.shortfall[tier] = failure->bytes;
      return result;
    }
    result.end = event.at;
    sim.submit(commands);
    if (!sim.has_changed() || !plan) continue;
    const std::vector<PresentJob> present = present_in(sim);
    if (present.empty()) continue;
    const std::vector<Plan> planned = plan(present);
    for (const Plan& one : planned)
      for (const Tier tier : kTiers) result.shortfall[tier] = std::max(result.shortfall[tier], one.shortfall[tier]);
    result.feasible = result.shortfall == PerTier<Bytes>{};
    if (!result.feasible) return result;
    auto followed = std::make_shared<FollowedPlan>();
    followed->id = PlanId{++plans};
    followed->kernels = kernels;
    followed->commands = joined(planned, present, sim.programs());
    commands.clear();
    executor.on(Adopted{followed}, commands);
    sim.submit(commands);
    sim.follow(followed->id);
  }
  for (const SimProgram& program : sim.programs()) result.jobs.push_back(result_of(program));
  result.device_peak = executor.table().peak(Tier::device);
  result.moved = executor.moved();
  return result;
}

}  // namespace spillway
