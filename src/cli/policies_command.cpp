#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "policies/policies.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

struct PoliciesOptions {
  std::string name;
  bool json = false;
};

std::string_view kind_of(const ParameterSpec& spec) {
  return spec.is_file ? "file" : spec.is_whole ? "whole" : "number";
}

nlohmann::ordered_json json_of(const Policy& policy) {
  nlohmann::ordered_json values;
  values["name"] = policy.name;
  values["summary"] = policy.summary;
  values["plans"] = policy.plan != nullptr;
  values["runs"] = runs_for_real(policy);
  values["parameters"] = nlohmann::ordered_json::array();
  for (const ParameterSpec& one : policy.traits.parameters.specs()) {
    const auto number = [&](double value) {
      return one.is_file ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
    };
    values["parameters"].push_back({{"name", one.name},
                                    {"kind", kind_of(one)},
                                    {"default", number(one.fallback)},
                                    {"least", number(one.least)},
                                    {"most", number(one.most)},
                                    {"meaning", one.meaning}});
  }
  return values;
}

Result<int> run(const PoliciesOptions& options) {
  std::vector<Policy> policies(kPolicies.begin(), kPolicies.end());
  if (!options.name.empty()) {
    TRY(const Policy policy, policy_by_name(options.name));
    policies = {policy};
  }
  if (options.json) {
    nlohmann::ordered_json report = new_report();
    report["policies"] = nlohmann::ordered_json::array();
    for (const Policy& policy : policies) report["policies"].push_back(json_of(policy));
    return print(to_text(report));
  }
  Table table({{"policy", Align::left}, {"plans"}, {"runs"}, {"what it does", Align::left}});
  Table parameters({{"parameter", Align::left}, {"default"}, {"least"}, {"most"}, {"meaning", Align::left}});
  bool any = false;
  for (const Policy& policy : policies) {
    table.add_row({std::string(policy.name), policy.plan != nullptr ? "yes" : "no",
                   runs_for_real(policy) ? "yes" : "no", std::string(policy.summary)});
    for (const ParameterSpec& one : policy.traits.parameters.specs()) {
      any = true;
      const auto number = [&](double value) { return one.is_file ? "" : fmt::format("{}", value); };
      parameters.add_row({fmt::format("{}:{}", policy.name, one.name), one.is_file ? "no file" : number(one.fallback),
                          number(one.least), number(one.most), std::string(one.meaning)});
    }
  }
  return print(table.text() + (any ? '\n' + parameters.text() : ""));
}

}  // namespace

void add_policies_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("policies", "The policies that plan, simulate and compare know");
  command->footer(
      "Examples:\n  spillway policies\n  spillway policies deepum\n"
      "  spillway simulate model.trace --policy deepum:ahead=16 --machine a100\n"
      "`plans`: it makes a plan beforehand. `runs`: `spillway run` can follow it, too, since its kernels may start "
      "before all that they touch is known.");
  auto options = std::make_shared<PoliciesOptions>();
  command->add_option("NAME", options->name, "one policy");
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback([options, &status] { status = finish(run(*options)); });
}

}  // namespace spillway
