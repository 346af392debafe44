#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/lifetimes.h"
#include "base/result.h"
#include "machines/sim/simulate.h"
#include "plan/machine_model.h"
#include "plan/plan.h"
#include "plan/policy_traits.h"
#include "trace/trace.h"

namespace spillway {

// A program that trains on a device beside others: so many iterations from its arrival on.
struct DeviceJob {
  std::string name;
  const Trace& trace;
  const Lifetimes& lifetimes;
  double weight = 1;
  Nanos arrival{};
  std::uint32_t iterations = 50;
};

struct JobResult {
  Nanos first_iteration, mean_iteration;
  Nanos stall;  // of a mean iteration: that its kernels waited for memory
  Bytes peak;   // of its blocks on the device
};
struct JobsResult {
  bool feasible = true;
  PerTier<Bytes> shortfall;
  std::vector<JobResult> jobs;
  Bytes device_peak;
  PerLink<Bytes> moved;
  Nanos end;  // when the last job has left

  Nanos mean_iteration() const;  // the mean of the jobs' means
};

// The plans of the jobs that are there, by their places in the list; called whenever a job has arrived, ended its first
// iteration or left. No plan: nothing is planned for it.
struct PresentJob {
  std::size_t job;
  bool has_measured;  // its first iteration is over
};
using PlanJobs = std::function<std::vector<Plan>(const std::vector<PresentJob>&)>;

// Deterministic. What the jobs' kernels need at a time must fit where kernels cannot fault.
Result<JobsResult> simulate_jobs(const std::vector<DeviceJob>& jobs, const MachineModel& machine,
                                 const PolicyTraits& traits, const PlanJobs& plan);

// TENSILE's measures (section V-A): what is saved of the memory that the jobs use without a policy and without a limit,
// how much longer their iterations take, and the quotient of both.
struct JobsCost {
  double memory_saving_ratio = 0, extra_overhead_ratio = 0, cost_benefit_ratio = 0;
};
JobsCost cost_of(const JobsResult& with_policy, const JobsResult& without);

}  // namespace spillway
