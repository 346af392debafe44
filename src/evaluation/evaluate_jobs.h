#pragma once

#include <vector>

#include "base/result.h"
#include "latency/latency_model.h"
#include "machines/sim/simulate_jobs.h"
#include "plan/machine_model.h"
#include "policies/policies.h"

namespace spillway {

// Whether the policy is simulated with several jobs as its parameters say.
Result<> check_for_jobs(const Policy& policy);

// Several jobs on one device under a policy, which plans anew whenever one has arrived, has ended its first iteration
// or has left. TENSILE plans for all jobs at once. Planners that know one job plan for a share of the device and of
// host memory, in proportion to the jobs' peaks. Until a job's first iteration is over, its plan reckons with times
// that `predictor` tells, if that is given; else with those of the policy's parameter `cold-start`.
Result<JobsResult> evaluate_jobs(const Policy& policy, const std::vector<DeviceJob>& jobs, const MachineModel& machine,
                                 const LatencyModel* predictor = nullptr);

// The same jobs without a policy and without a limit: what TENSILE's measures compare with.
Result<JobsResult> evaluate_unlimited(const std::vector<DeviceJob>& jobs, const MachineModel& machine);

}  // namespace spillway
