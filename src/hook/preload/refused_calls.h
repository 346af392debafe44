#pragma once

#include "session/hook_side.h"

namespace spillway {

// From now on this process's calls that would take memory of this range out of our hands fail (docs/limits.md
// lists them), and the report says so.
void refuse_calls_on(ManagedRange range, Session& session) noexcept;

}  // namespace spillway
