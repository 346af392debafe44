#include "cli/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "cli/cold_start.h"
#include "plan/validate.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Result<> run(Evaluation& evaluation, const Policy& policy, const Case& input, const std::string& where,
             RunTimeline* timeline) {
  if (policy.traits.kernels_fault && std::ranges::any_of(evaluation.plan.evictions, &Eviction::during))
    return fail(Errc::bad_input,
                fmt::format("{}: an eviction is `during` a kernel, and kernels of {} fault: what leaves "
                            "could be touched again; name a policy that moves whole tensors",
                            where, policy.name));
  TRY_VOID(validate_plan(evaluation.plan, input.loaded.trace, input.loaded.hash, input.lifetimes, input.machine,
                         policy.traits.uses_host, where));
  const auto begin = Clock::now();
  TRY(evaluation.result, simulate(input.played(), input.lifetimes, input.machine, policy.traits,
                                  policy.plan ? &evaluation.plan : nullptr, Foreknowledge::commands, timeline));
  evaluation.simulating_seconds = seconds_since(begin);
  if (evaluation.result.feasible) evaluation.plan.predicted_seconds = seconds(evaluation.result.iteration);
  if (timeline != nullptr && evaluation.result.feasible) {
    timeline->trace_name = input.loaded.trace.name;
    timeline->trace_hash = input.loaded.hash;
    timeline->policy = evaluation.plan.policy;
    timeline->machine = text_of(input.machine);
  }
  return {};
}

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

Result<Case> load_case(const std::string& trace_path, MachineModel machine, std::optional<Noise> noise) {
  TRY(LoadedTrace loaded, load_trace(trace_path));
  Lifetimes lifetimes = analyse_lifetimes(loaded.trace);
  Case input{std::move(loaded), std::move(lifetimes), std::move(machine), noise};
  if (noise) input.noisy = with_noise(input.loaded.trace, *noise);
  return input;
}

Result<Evaluation> evaluate(const Policy& policy, const Case& input, RunTimeline* timeline) {
  Evaluation evaluation;
  TRY(const auto cold_start, cold_start_of(policy));
  const auto begin = Clock::now();
  const bool feasible = shortfall(input.lifetimes, input.machine, policy.traits) == PerTier<Bytes>{};
  if (feasible && policy.plan) {
    const Trace reckoned = reckoned_trace(input.loaded.trace, cold_start);
    evaluation.plan = policy.plan({reckoned, input.lifetimes, input.machine, policy.traits.parameters});
    evaluation.plan.reckoned = reckoned_from(reckoned, cold_start.has_value());
  }
  evaluation.planning_seconds = seconds_since(begin);
  evaluation.plan.policy = text_of(policy);
  evaluation.plan.trace_name = input.loaded.trace.name;
  evaluation.plan.trace_hash = input.loaded.hash;
  evaluation.plan.trace_shape = shape_of(input.loaded.trace);
  evaluation.plan.machine_name = input.machine.name;
  evaluation.plan.machine_hash = input.machine.hash;
  evaluation.plan.machine_overrides = input.machine.overrides;
  if (evaluation.plan.shortfall != PerTier<Bytes>{}) {
    evaluation.result.feasible = false;
    evaluation.result.shortfall = evaluation.plan.shortfall;
    return evaluation;
  }
  TRY_VOID(run(evaluation, policy, input, "plan", timeline));
  return evaluation;
}

Result<Evaluation> evaluate(Plan plan, const std::string& file, const Case& input, RunTimeline* timeline) {
  const auto policy = policy_by_name(plan.policy);
  if (!policy) return fail(Errc::bad_input, fmt::format("{}: 'policy': {}", file, policy.error().message));
  if (policy->plan == nullptr && plan.moves() + plan.recomputations.size() > 0)
    return fail(
        Errc::bad_input,
        fmt::format("{}: it has commands, but its policy, {}, plans nothing; name one that does", file, plan.policy));
  Evaluation evaluation;
  evaluation.plan = std::move(plan);
  TRY_VOID(run(evaluation, *policy, input, file, timeline));
  return evaluation;
}

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

std::string text_of(const MachineModel& machine) {
  if (machine.device.count == 1) return printable(machine.name);
  return fmt::format("each of {} devices of {}", machine.device.count, printable(machine.name));
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
