#include "evaluation/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "evaluation/cold_start.h"
#include "plan/validate.h"
#include "report/table.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

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
    timeline->trace_name = titled_name(input.loaded.trace);
    timeline->trace_hash = input.loaded.hash;
    timeline->policy = evaluation.plan.policy;
    timeline->machine = text_of(input.machine);
  }
  return {};
}

}  // namespace

std::string text_of(const MachineModel& machine) {
  if (machine.device.count == 1) return printable(machine.name);
  return fmt::format("each of {} devices of {}", machine.device.count, printable(machine.name));
}

Case case_of(LoadedTrace loaded, MachineModel machine, std::optional<Noise> noise) {
  Lifetimes lifetimes = analyse_lifetimes(loaded.trace);
  Case input{std::move(loaded), std::move(lifetimes), std::move(machine), noise};
  if (noise) input.noisy = with_noise(input.loaded.trace, *noise);
  return input;
}

Result<Case> load_case(const std::string& trace_path, MachineModel machine, std::optional<Noise> noise) {
  TRY(LoadedTrace loaded, load_trace(trace_path));
  return case_of(std::move(loaded), std::move(machine), noise);
}

Result<Evaluation> evaluate(const Policy& policy, const Case& input, RunTimeline* timeline) {
  Evaluation evaluation;
  TRY(const auto cold_start, cold_start_of(policy));
  const auto begin = Clock::now();
  // What lacks place below may be computed again instead; the simulation sees whether it is.
  const PerTier<Bytes> missing = shortfall(input.lifetimes, input.machine, policy.traits);
  const bool may_fit = policy.traits.recomputes_first ? missing.device == Bytes{} : missing == PerTier<Bytes>{};
  if (may_fit && policy.plan) {
    const Trace reckoned = reckoned_trace(input.loaded.trace, cold_start ? &*cold_start : nullptr);
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

}  // namespace spillway
