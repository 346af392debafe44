#pragma once

#include <string>

#include "base/result.h"
#include "runtime/run_planner.h"

namespace spillway {

// Writes the trace of rows of blocks that the plan was made for, and the plan with that trace's hash.
struct ProposalFiles {
  std::string trace, plan;
};
// `stem`: both names without their ends.
ProposalFiles plan_files(const std::string& stem);
Result<> save_proposed(const Proposal& proposed, const std::string& script, const ProposalFiles& files);

}  // namespace spillway
