#pragma once

#include "base/result.h"
#include "hook/session/session.h"

namespace spillway {

// Whether a script can be run as the configuration says: the budgets, the directory to spill to, and the rights and
// abilities of this kernel, each tried for real and given back. The hook would find the same out, but in the middle of
// the script.
Result<> preflight(const SessionConfig& config);

}  // namespace spillway
