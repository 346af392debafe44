#pragma once

#include <string>

#include "base/result.h"

namespace spillway {

// Whether the name is that of a plan, not of a trace.
bool names_plan(const std::string& file);

// The iteration with the plan's moves, line by line, or one JSON object. The trace that it was made for lies beside it,
// as `spillway run --record` leaves both, under the same name but for the end.
Result<std::string> show_plan(const std::string& file, bool json);

}  // namespace spillway
