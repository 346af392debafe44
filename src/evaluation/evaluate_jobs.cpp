#include "evaluation/evaluate_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "evaluation/cold_start.h"
#include "policies/tensile.h"

namespace spillway {
namespace {

// The machines that the present jobs' planners see.
std::vector<MachineModel> shares_of(const std::vector<DeviceJob>& jobs, const std::vector<PresentJob>& present,
                                    const MachineModel& machine) {
  const auto peak_of = [&](const PresentJob& one) { return std::ranges::max(jobs[one.job].lifetimes.live); };
  Bytes all;
  for (const PresentJob& one : present) all += peak_of(one);
  std::vector<MachineModel> shares(present.size(), machine);
  for (std::size_t at = 0; at < present.size(); ++at) {
    const double share = static_cast<double>(peak_of(present[at]).value) / static_cast<double>(all.value);
    const auto part_of = [&](Bytes whole) {
      return Bytes{static_cast<std::uint64_t>(static_cast<double>(whole.value) * share)};
    };
    shares[at].device.memory = part_of(machine.device.memory);
    shares[at].host.memory = part_of(machine.host.memory);
  }
  return shares;
}

// Who plans from a first iteration has no plan before it is over. Before it is, whoever has predicted times plans with
// those.
std::vector<Plan> plans_of(const Policy& policy, const std::vector<DeviceJob>& jobs,
                           const std::vector<Trace>& unmeasured, const MachineModel& machine,
                           const std::vector<PresentJob>& present) {
  const bool plans_together = policy.plan == plan_tensile;
  const std::vector<MachineModel> machines =
      plans_together ? std::vector<MachineModel>(present.size(), machine) : shares_of(jobs, present, machine);
  std::vector<Problem> problems;
  for (std::size_t at = 0; at < present.size(); ++at) {
    const DeviceJob& job = jobs[present[at].job];
    const Trace& trace = present[at].has_measured ? job.trace : unmeasured[present[at].job];
    problems.push_back({trace, job.lifetimes, machines[at], policy.traits.parameters});
  }
  if (plans_together) return plan_tensile_jobs(problems);
  std::vector<Plan> plans;
  for (std::size_t at = 0; at < present.size(); ++at)
    plans.push_back(policy.traits.plans_from_second && !present[at].has_measured ? Plan{} : policy.plan(problems[at]));
  return plans;
}

}  // namespace

Result<> check_for_jobs(const Policy& policy) {
  const Parameters& parameters = policy.traits.parameters;
  if (!parameters.has("pool") || !parameters.is_on("pool")) return {};
  return fail(Errc::usage, fmt::format("{}: PyTorch's pool of blocks is simulated for one trace alone; leave out "
                                       "pool=1, or give TRACE without --job",
                                       text_of(policy)));
}

Result<JobsResult> evaluate_jobs(const Policy& policy, const std::vector<DeviceJob>& jobs, const MachineModel& machine,
                                 const LatencyModel* predictor) {
  TRY_VOID(check_for_jobs(policy));
  TRY(const auto of_file, cold_start_of(policy));
  const LatencyModel* cold_start = predictor != nullptr ? predictor : of_file ? &*of_file : nullptr;
  std::vector<Trace> unmeasured;
  for (const DeviceJob& job : jobs) unmeasured.push_back(reckoned_trace(job.trace, cold_start));
  PlanJobs plan;
  if (policy.plan != nullptr)
    plan = [&](const std::vector<PresentJob>& present) { return plans_of(policy, jobs, unmeasured, machine, present); };
  return simulate_jobs(jobs, machine, policy.traits, plan);
}

Result<JobsResult> evaluate_unlimited(const std::vector<DeviceJob>& jobs, const MachineModel& machine) {
  TRY(const Policy ideal, policy_by_name("ideal"));
  return simulate_jobs(jobs, machine, ideal.traits, {});
}

}  // namespace spillway
