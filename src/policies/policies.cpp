#include "policies/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ranges>

namespace spillway {
namespace {

std::string range_text(const ParameterSpec& spec) {
  return fmt::format("{} from {} to {}", spec.is_whole ? "a whole number" : "a number", spec.least, spec.most);
}

// "ahead=16" of the policy.
Result<> set_parameter(Policy& policy, std::string_view setting) {
  Parameters& parameters = policy.traits.parameters;
  const std::size_t equals = setting.find('=');
  const std::string_view name = setting.substr(0, equals);
  if (equals == std::string_view::npos || !parameters.has(name)) {
    std::string names;
    for (const ParameterSpec& spec : parameters.specs())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", spec.name);
    if (names.empty())
      return fail(Errc::usage,
                  fmt::format("the policy {} has no parameters, and '{}' was given", policy.name, setting));
    return fail(Errc::usage, fmt::format("'{}' is no parameter of {}; write NAME=VALUE with one of {}", setting,
                                         policy.name, names));
  }
  if (parameters.is_set(name))
    return fail(Errc::usage, fmt::format("{}: '{}' is given twice; leave one out", policy.name, name));
  const ParameterSpec& spec = *std::ranges::find(parameters.specs(), name, &ParameterSpec::name);
  const std::string_view text = setting.substr(equals + 1);
  if (spec.is_file) {
    if (text.empty())
      return fail(Errc::usage, fmt::format("{}: '{}' must name a file, with no comma in its path", policy.name, name));
    parameters.set(name, std::string(text));
    return {};
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= spec.least && value <= spec.most) ||
      (spec.is_whole && value != std::floor(value)))
    return fail(Errc::usage, fmt::format("{}: '{}' must be {}, not '{}'", policy.name, name, range_text(spec), text));
  parameters.set(name, value);
  return {};
}

}  // namespace

Result<Policy> policy_by_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto found = std::ranges::find(kPolicies, name, &Policy::name);
  if (found == kPolicies.end())
    return fail(Errc::usage, fmt::format("there is no policy '{}'; there are {}", name, policy_names()));
  Policy policy = *found;
  if (colon == std::string_view::npos) return policy;
  for (const auto setting : text.substr(colon + 1) | std::views::split(','))
    TRY_VOID(set_parameter(policy, std::string_view(setting)));
  return policy;
}

std::string text_of(const Policy& policy) { return std::string(policy.name) + policy.traits.parameters.text(); }

std::string policy_names() {
  std::string names;
  for (const Policy& policy : kPolicies) names += fmt::format("{}{}", names.empty() ? "" : ", ", policy.name);
  return names;
}

std::string policy_summaries() {
  std::string lines = "Policies (`spillway policies` lists their parameters):\n";
  for (const Policy& policy : kPolicies) lines += fmt::format("  {:<14} {}\n", policy.name, policy.summary);
  return lines + '\n';
}

}  // namespace spillway
