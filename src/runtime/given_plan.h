#pragma once

#include <string>

#include "base/result.h"
#include "plan/plan.h"

namespace spillway {

// A plan that was made before, for a run to follow.
struct GivenPlan {
  std::string file;
  Plan plan;
};

// The error says why no run could follow what the file holds.
Result<GivenPlan> load_given_plan(const std::string& file);

}  // namespace spillway
