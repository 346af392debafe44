#include "runtime/given_plan.h"

#include <fmt/format.h>

#include "plan/plan_file.h"
#include "policies/policies.h"

namespace spillway {

Result<GivenPlan> load_given_plan(const std::string& file) {
  TRY(Plan plan, load_plan(file));
  const auto policy = policy_by_name(plan.policy);
  if (!policy) return fail(Errc::bad_input, fmt::format("{}: 'policy': {}", file, policy.error().message));
  if (policy->plan == nullptr || !runs_for_real(*policy))
    return fail(Errc::bad_input,
                fmt::format("{}: no run can follow plans of {}; make one with --policy g10", file, plan.policy));
  return GivenPlan{.file = file, .plan = std::move(plan)};
}

}  // namespace spillway
