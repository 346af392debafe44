#include "policies/policies.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway {

Result<Policy> policy_by_name(std::string_view name) {
  const auto found = std::ranges::find(kPolicies, name, &Policy::name);
  if (found != kPolicies.end()) return *found;
  std::string names;
  for (const Policy& policy : kPolicies) names += fmt::format("{}{}", names.empty() ? "" : ", ", policy.name);
  return fail(Errc::usage, fmt::format("there is no policy '{}'; there are {}", name, names));
}

}  // namespace spillway
