#pragma once

#include <optional>

#include "base/result.h"
#include "plan/machine_model.h"
#include "plan/plan.h"
#include "timeline/run_timeline.h"
#include "trace/format.h"

namespace spillway {

// What a plan expects of a steady iteration: kernels start as if none waited, each move begins with its command, as
// soon as those before it on its way are over, and takes what the machine's rates say. Nothing is simulated: what
// shares a link, page faults and victims are left out. Without a machine, moves take no time.
//
// The plan must have passed the validator for this trace; the error says which recomputation cannot be.
Result<RunTimeline> planned_timeline(const Plan& plan, const LoadedTrace& loaded,
                                     const std::optional<MachineModel>& machine);

}  // namespace spillway
