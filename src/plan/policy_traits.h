#pragma once

#include <memory>

#include "base/units.h"
#include "plan/parameters.h"

namespace spillway {

class OnlinePolicy;
// For a device of this size. Without parameters those have their fallbacks.
using OnlineMaker = std::unique_ptr<OnlinePolicy> (*)(Bytes device, const Parameters& parameters);

// What the executor does under a policy beyond its plan; the mechanism obeys, the policy is a row of a table.
struct PolicyTraits {
  bool unlimited_device = false;     // the device is as large as it takes
  bool kernels_fault = true;         // kernels start at once and fault; false: whole working sets are moved first
  bool uses_host = true;             // what leaves the device may go to host memory
  bool uses_ssd = true;              // false: host memory is the only tier below
  bool whole_tensors_leave = false;  // where no plan says what: the least recently used one that suffices
  Bytes least_victim{};              // Smaller ones stay.
  bool keeps_copies = false;         // what comes unplanned leaves its copy below, whatever the plan
  OnlineMaker online = nullptr;      // what moves ahead of kernels that no plan knows; null: nothing does
  Parameters parameters = {};        // what a user may set, and has set
};

}  // namespace spillway
