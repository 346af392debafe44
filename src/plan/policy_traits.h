#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "analysis/lifetimes.h"
#include "base/units.h"
#include "plan/machine_model.h"
#include "plan/parameters.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace spillway {

class OnlinePolicy;
// For a device of this size. Without parameters those have their fallbacks.
using OnlineMaker = std::unique_ptr<OnlinePolicy> (*)(Bytes device, const Parameters& parameters);

// What an iteration under a plan was like.
struct PastIteration {
  const Trace& trace;  // with the durations that were measured
  const Lifetimes& lifetimes;
  const MachineModel& machine;
  const Parameters& parameters;
  const std::vector<Nanos>& waits;  // by kernel
};
// Another plan after it; nothing: this one stays.
using ReviseFn = std::optional<Plan> (*)(const PastIteration& iteration, const Plan& plan);

// What the executor does under a policy beyond its plan; the mechanism obeys, the policy is a row of a table.
struct PolicyTraits {
  bool unlimited_device = false;     // the device is as large as it takes
  bool kernels_fault = true;         // kernels start at once and fault; false: whole working sets are moved first
  bool uses_host = true;             // what leaves the device may go to host memory
  bool uses_ssd = true;              // false: host memory is the only tier below
  bool whole_tensors_leave = false;  // where no plan says what: the least recently used one that suffices
  Bytes least_victim{};              // Smaller ones stay.
  bool keeps_copies = false;         // what comes unplanned leaves its copy below, whatever the plan
  bool plans_from_second = false;    // The first iteration has no plan: it is what one is made from.
  ReviseFn revise = nullptr;         // asked after an iteration under a plan
  bool recomputes_first = false;     // its first plan may recompute what fits nowhere
  bool takes_back = false;           // what it says, if the next iteration is longer; then the plan stays
  OnlineMaker online = nullptr;      // what moves ahead of kernels that no plan knows; null: nothing does
  Parameters parameters = {};        // what a user may set, and has set
};

}  // namespace spillway
