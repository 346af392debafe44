#include "cli/evaluation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

// A file's path, null if none is set; else the number.
Json json_of(const Parameters& parameters, const ParameterSpec& spec) {
  if (!spec.is_file) return parameters[spec.name];
  const auto path = parameters.file(spec.name);
  return path ? Json(*path) : Json(nullptr);
}

Json json_of(const FlashWear& wear) {
  const auto json_of_part = [](const FlashWear::Part& part) {
    return Json{{"host_written_bytes", part.host_written.value},
                {"written_bytes", part.written.value},
                {"erases", part.erases},
                {"write_amplification", part.write_amplification}};
  };
  return {{"iteration", json_of_part(wear.iteration)},
          {"all_iterations", json_of_part(wear.all)},
          {"years", wear.years ? Json(*wear.years) : Json(nullptr)}};
}

}  // namespace

std::string missing_text(const PerTier<Bytes>& shortfall) {
  std::string text;
  for (const Tier tier : kTiers)
    if (shortfall[tier] > Bytes{})
      text += fmt::format("{}{} more {}", text.empty() ? "" : ", ", to_text(shortfall[tier]),
                          tier == Tier::ssd ? "on the SSD" : fmt::format("{} memory", to_text(tier)));
  return text;
}

std::string title_of(const Evaluation& evaluation, const Case& input) {
  const std::string title = fmt::format("{} for {} on {}", evaluation.plan.policy, printable(input.loaded.trace.name),
                                        text_of(input.machine));
  const SimulationResult& result = evaluation.result;
  return result.feasible ? title : fmt::format("{}: infeasible, it needs {}\n", title, missing_text(result.shortfall));
}

std::string noise_text(const Case& input) {
  if (!input.noise) return "";
  return fmt::format("Kernels take up to {} % more or less than plans reckon with (seed {}).\n", input.noise->percent,
                     input.noise->seed);
}

Json new_report(const Case& input) {
  Json report = new_report(input.loaded);
  report["machine"] = {
      {"name", input.machine.name}, {"hash", input.machine.hash}, {"overrides", input.machine.overrides}};
  if (input.noise) report["noise"] = {{"percent", input.noise->percent}, {"seed", input.noise->seed}};
  return report;
}

void append_result(Json& object, const Evaluation& evaluation) {
  const SimulationResult& result = evaluation.result;
  const auto when_feasible = [&](double value) { return result.feasible ? Json(value) : Json(nullptr); };
  object["policy"] = evaluation.plan.policy;
  object["parameters"] = Json::object();
  if (const auto policy = policy_by_name(evaluation.plan.policy))
    for (const ParameterSpec& one : policy->traits.parameters.specs())
      object["parameters"][one.name] = json_of(policy->traits.parameters, one);
  object["feasible"] = result.feasible;
  object["shortfall"] = json_of(result.shortfall);
  object["steady"] = result.steady;
  object["iteration_seconds"] = when_feasible(seconds(result.iteration));
  object["cold_iteration_seconds"] = when_feasible(seconds(result.cold_iteration));
  object["ideal_seconds"] = when_feasible(seconds(result.ideal));
  object["percent_of_ideal"] = when_feasible(result.percent_of_ideal());
  object["stall_seconds"] = when_feasible(seconds(result.stall()));
  object["stalled_kernels"] = result.stalled_kernels;
  object["faults"] = result.faults;
  object["moved_bytes"] = json_of(result.moved);
  object["clean_drops_bytes"] = result.dropped_clean.value;
  object["hidden_seconds"] = when_feasible(seconds(result.hidden));
  object["recomputed_kernels"] = result.recomputed_kernels;
  object["recompute_seconds"] = when_feasible(seconds(result.recompute));
  object["peak_bytes"] = json_of(result.peak);
  object["warmup_iterations"] = result.warmup_iterations;
  object["skipped_commands"] = result.skipped_commands;
  if (result.flash) object["flash"] = json_of(*result.flash);
  object["wall_seconds"] = evaluation.planning_seconds + evaluation.simulating_seconds;
}

}  // namespace spillway
