#include "runtime/run_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spillway {

Result<RunPolicy> run_policy(std::string_view name) {
  constexpr std::string_view kWithoutPlan = "deepum-clean";
  const bool chooses = name == kAuto;
  const auto found = std::ranges::find(kPolicies, chooses ? kWithoutPlan : name, &Policy::name);
  if (found == kPolicies.end() || !runs_for_real(*found))
    return fail(Errc::usage, fmt::format("no run can follow a policy '{}'; there are {}", name,
                                         fmt::join(run_policy_names(), ", ")));
  return RunPolicy{.name = chooses ? kAuto : found->name, .chooses = chooses, .without_plan = &*found};
}

std::vector<std::string> run_policy_names() {
  std::vector<std::string> names{std::string(kAuto)};
  for (const Policy& policy : kPolicies)
    if (runs_for_real(policy)) names.emplace_back(policy.name);
  return names;
}

}  // namespace spillway
