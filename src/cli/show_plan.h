#pragma once

#include <string>

#include "base/result.h"

namespace spillway {

// Whether the name is that of a plan, not of a trace.
bool names_plan(const std::string& file);

// The iteration with the plan's moves, line by line, or one JSON object. `trace` is what it was made for; empty: what
// lies beside it under the same name but for the end, as `spillway run --record` leaves both.
Result<std::string> show_plan(const std::string& file, const std::string& trace, bool json);

}  // namespace spillway
