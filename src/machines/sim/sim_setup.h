#pragma once

#include "base/result.h"
#include "executor/executor.h"
#include "machines/sim/layout.h"
#include "machines/sim/sim_machine.h"
#include "memory/tier.h"
#include "plan/machine_model.h"
#include "plan/policy_traits.h"
#include "trace/trace.h"

namespace spillway {

// What a machine's description and a policy are to simulated hardware and to the executor.
Result<SimHardware> hardware_of(const MachineModel& machine);
PerTier<Bytes> capacity(const MachineModel& machine, const PolicyTraits& traits);
ExecutorOptions executor_options(const MachineModel& machine, const PolicyTraits& traits);

// The most that one of the trace's kernels needs at a time where kernels want whole tensors; in blocks, each once.
Bytes largest_working_set(const Trace& trace, const Layout& layout);

}  // namespace spillway
