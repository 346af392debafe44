#include "policies/policies.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway {

Result<Policy> policy_by_name(std::string_view name) {
  const auto found = std::ranges::find(kPolicies, name, &Policy::name);
  if (found != kPolicies.end()) return *found;
  return fail(Errc::usage, fmt::format("there is no policy '{}'; there are {}", name, policy_names()));
}

std::string policy_names() {
  std::string names;
  for (const Policy& policy : kPolicies) names += fmt::format("{}{}", names.empty() ? "" : ", ", policy.name);
  return names;
}

std::string policy_summaries() {
  std::string lines = "Policies:\n";
  for (const Policy& policy : kPolicies) lines += fmt::format("  {:<14} {}\n", policy.name, policy.summary);
  return lines + '\n';
}

}  // namespace spillway
