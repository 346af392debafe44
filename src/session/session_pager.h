#pragma once

#include "plan/machine_model.h"
#include "runtime/pager.h"
#include "session/session.h"

namespace spillway {

// The pager that a session asks for.
PagerConfig pager_config(const SessionConfig& wanted);
// The machine that plans are made for.
MachineModel measured_machine(const SessionConfig& wanted);

}  // namespace spillway
