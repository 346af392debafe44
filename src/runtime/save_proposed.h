#pragma once

#include <string>

#include "base/result.h"
#include "runtime/run_planner.h"

namespace spillway {

// Writes the trace of rows of blocks that the plan was made for, and the plan with that trace's hash.
struct PlanFiles {
  std::string trace, plan;
};
// `stem`: both names without their ends.
PlanFiles plan_files(const std::string& stem);
Result<> save_proposed(const ProposedPlan& proposed, const std::string& script, const PlanFiles& files);

}  // namespace spillway
