#include "runtime/given_plan.h"

#include <fmt/format.h>

#include <algorithm>

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
  const auto is_timed = [](const auto& move) { return move.delay > Nanos{} || move.awaited_by; };
  if (!plan.recomputations.empty() || std::ranges::any_of(plan.evictions, &Eviction::during) ||
      std::ranges::any_of(plan.evictions, is_timed) || std::ranges::any_of(plan.prefetches, is_timed))
    return fail(Errc::bad_input, fmt::format("{}: it has recomputations, delays, moves during kernels or moves that "
                                             "kernels await, which only `spillway simulate` follows; take them out",
                                             file));
  return GivenPlan{.file = file, .plan = std::move(plan)};
}

}  // namespace spillway
