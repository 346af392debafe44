#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/policies.h"

namespace spillway {

inline constexpr std::string_view kAuto = "auto";
// The planners that it tries. Of the others that runs can follow, none ever made shorter iterations than the best of
// these, on the examples and on the G10 artifact's traces, at three budgets each and more.
inline constexpr std::array<std::string_view, 3> kTriedByAuto{"g10", "g10-clean", "furthest-ahead"};

// What a run does under the policy that its user asks for: one of the table's, or "auto", the best of all plans.
struct RunPolicy {
  std::string_view name;  // lives for ever
  // Of all plans the one that is predicted best is followed. It may be given up, for nobody has asked for its policy.
  bool chooses = false;
  // Of this table entry is what the run does until there is a plan, and wherever kernels are not as planned.
  const Policy* without_plan = nullptr;

  bool plans() const { return chooses || without_plan->plan != nullptr; }
  bool learns() const { return without_plan->traits.online != nullptr; }
  // Whether the run may follow it.
  bool allows(const Policy& policy) const {
    const bool is_tried = chooses && std::ranges::find(kTriedByAuto, policy.name) != kTriedByAuto.end();
    return runs_for_real(policy) && (is_tried || policy.name == without_plan->name);
  }
  // The same run where nothing can be planned.
  RunPolicy unplanned() const { return {.name = without_plan->name, .without_plan = without_plan}; }
};

// Errors list the names there are.
Result<RunPolicy> run_policy(std::string_view name);
std::vector<std::string> run_policy_names();

}  // namespace spillway
