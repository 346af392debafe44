#pragma once

#include "base/result.h"
#include "base/units.h"

namespace spillway {

// The memory that this process could use at most: the machine's, or less where a control group says so (a container).
Result<Bytes> usable_memory();

// 16 blocks for each CPU that we may run on: each may have a thread that touches tensors, and one instruction of a
// thread must find all its blocks at once.
Bytes least_device_budget();

// Whether the script can be run with that much. Device and host memory are both parts of this machine's.
Result<> check_budgets(Bytes device, Bytes host);

}  // namespace spillway
