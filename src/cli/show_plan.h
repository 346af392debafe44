#pragma once

#include <string>

#include "base/result.h"
#include "plan/plan.h"
#include "trace/format.h"

namespace spillway {

// A plan that is valid for its trace, whatever memory it is for.
struct PlanWithTrace {
  Plan plan;
  LoadedTrace loaded;
};
// `trace` is what it was made for; empty: what lies beside it under the same name but for the end, as `spillway run
// --record` leaves both.
Result<PlanWithTrace> load_plan_with_trace(const std::string& file, const std::string& trace);

// The iteration with the plan's moves, line by line, or one JSON object.
std::string show_plan(const PlanWithTrace& shown, bool json);

}  // namespace spillway
