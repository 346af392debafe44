#include "reproduce/run_experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "evaluation/evaluate.h"
#include "evaluation/evaluate_jobs.h"
#include "plan/machine_file.h"

namespace spillway {
namespace {

constexpr std::size_t kHundredths = 100;  // that a distribution of slowdowns is kept in

void add_kernels(Outcome& outcome, const std::vector<SimulatedKernel>& kernels) {
  std::vector<double> slowdown;
  for (const SimulatedKernel& kernel : kernels) slowdown.push_back(kernel.slowdown());
  std::ranges::sort(slowdown);
  outcome.kernels = slowdown.size();
  outcome.slowed_kernels =
      static_cast<std::uint64_t>(std::ranges::count_if(slowdown, [](double one) { return one > kSlowed; }));
  for (std::size_t part = 0; part <= kHundredths && !slowdown.empty(); ++part)
    outcome.slowdown.push_back(slowdown[part * (slowdown.size() - 1) / kHundredths]);
}

Outcome outcome_of(const SimulationResult& result, const Lifetimes& lifetimes) {
  Outcome outcome{.feasible = result.feasible, .moved = {}};
  if (!result.feasible) return outcome;
  outcome.iteration_seconds = seconds(result.iteration);
  outcome.ideal_seconds = seconds(result.ideal);
  outcome.first_iteration_seconds = seconds(result.cold_iteration);
  outcome.stall_seconds = seconds(result.stall());
  outcome.hidden_seconds = seconds(result.hidden);
  outcome.faults = result.faults;
  outcome.moved = result.moved;
  outcome.peak = result.peak.device;
  outcome.unlimited_peak = std::ranges::max(lifetimes.live);
  if (result.flash) outcome.flash_years = result.flash->years;
  add_kernels(outcome, result.kernels);
  return outcome;
}

Outcome outcome_of(const JobsResult& result, const JobsResult& unlimited) {
  Outcome outcome{.feasible = result.feasible, .moved = {}};
  if (!result.feasible) return outcome;
  const auto mean = [&](Nanos JobResult::* value) {
    double sum = 0;
    for (const JobResult& job : result.jobs) sum += seconds(job.*value);
    return sum / static_cast<double>(result.jobs.size());
  };
  outcome.iteration_seconds = seconds(result.mean_iteration());
  outcome.ideal_seconds = seconds(unlimited.mean_iteration());
  outcome.first_iteration_seconds = mean(&JobResult::first_iteration);
  outcome.stall_seconds = mean(&JobResult::stall);
  outcome.moved = result.moved;
  outcome.peak = result.device_peak;
  outcome.unlimited_peak = unlimited.device_peak;
  return outcome;
}

Result<MachineModel> machine_of(const Experiment& experiment) {
  TRY(MachineModel machine, load_machine(experiment.machine));
  for (const std::string& change : experiment.overrides) TRY_VOID(apply_override(machine, change));
  TRY_VOID(check_machine(machine));
  return machine;
}

LoadedTrace played(const LoadedTrace& loaded, const Experiment& experiment) {
  return {.trace = played_trace(loaded.trace, experiment), .hash = loaded.hash};
}

Result<Outcome> run_alone(const Experiment& experiment, const Policy& policy, MachineModel machine,
                          const Traces& traces) {
  const auto noise = experiment.noise_percent == 0
                         ? std::nullopt
                         : std::optional(Noise{.percent = experiment.noise_percent, .seed = 0});
  const Case input = case_of(played(traces.at(experiment.model), experiment), std::move(machine), noise);
  TRY(const Evaluation evaluation, evaluate(policy, input));
  return outcome_of(evaluation.result, input.lifetimes);
}

Result<Outcome> run_jobs(const Experiment& experiment, const Policy& policy, const MachineModel& machine,
                         const Traces& traces, const LatencyModel* predictor) {
  if (experiment.noise_percent > 0) return fail(Errc::usage, "noise is simulated for one trace alone, not for jobs");
  std::vector<std::string> models{experiment.model};
  for (const ExperimentJob& job : experiment.beside) models.push_back(job.model);
  std::map<std::string, LoadedTrace> loaded;
  std::map<std::string, Lifetimes> lifetimes;
  for (const std::string& model : models)
    if (!loaded.contains(model)) {
      const auto place = loaded.emplace(model, played(traces.at(model), experiment)).first;
      lifetimes.emplace(model, analyse_lifetimes(place->second.trace));
    }
  const std::vector<Nanos> arrivals = arrivals_of(experiment, traces);
  std::vector<DeviceJob> jobs;
  for (std::size_t at = 0; at < models.size(); ++at)
    jobs.push_back({.name = models[at],
                    .trace = loaded.at(models[at]).trace,
                    .lifetimes = lifetimes.at(models[at]),
                    .arrival = arrivals[at],
                    .iterations = experiment.iterations});
  TRY(const JobsResult unlimited, evaluate_unlimited(jobs, machine));
  TRY(const JobsResult result, evaluate_jobs(policy, jobs, machine, predictor));
  return outcome_of(result, unlimited);
}

}  // namespace

std::vector<Nanos> arrivals_of(const Experiment& experiment, const Traces& traces) {
  std::vector<Nanos> arrivals{Nanos{}};
  const std::string* before = &experiment.model;
  for (const ExperimentJob& job : experiment.beside) {
    Nanos iteration;
    const Trace trace = played_trace(traces.at(*before).trace, experiment);
    for (const Kernel& kernel : trace.kernels) iteration += kernel.gap + kernel.duration;
    arrivals.push_back(arrivals.back() + Nanos{iteration.value * job.after});
    before = &job.model;
  }
  return arrivals;
}

Result<std::string> key_of(const Experiment& experiment, const Traces& traces, const std::string& program) {
  TRY(const MachineModel machine, machine_of(experiment));
  TRY(const Policy policy, policy_by_name(experiment.policy));
  std::vector<std::string> jobs, teachers;
  for (const ExperimentJob& job : experiment.beside)
    jobs.push_back(fmt::format("{}+{}", traces.at(job.model).hash, job.after));
  for (const std::string& model : experiment.learned_from) teachers.push_back(traces.at(model).hash);
  return fmt::format(
      "trace={} machine={} policy={} noise={} estimates={} bytes={} iterations={} beside={} learned={} budget={} "
      "program={}",
      traces.at(experiment.model).hash, machine.hash, text_of(policy), experiment.noise_percent,
      experiment.estimates_percent, experiment.bytes_percent, experiment.iterations, fmt::join(jobs, ","),
      fmt::join(teachers, ","), experiment.budget_of, program);
}

Result<Outcome> run_experiment(const Experiment& experiment, const Traces& traces, Predictors& predictors) {
  TRY(MachineModel machine, machine_of(experiment));
  if (!experiment.budget_of.empty()) {
    Experiment other = experiment;
    other.policy = std::exchange(other.budget_of, {});
    TRY(Outcome outcome, run_experiment(other, traces, predictors));
    if (!outcome.feasible) return outcome;
    TRY_VOID(apply_override(machine, fmt::format("device.memory={}B", outcome.peak.value)));
  }
  TRY(const Policy policy, policy_by_name(experiment.policy));
  if (experiment.iterations == 0) return run_alone(experiment, policy, std::move(machine), traces);
  const bool predicts = experiment.budget_of.empty() && !experiment.learned_from.empty();
  const LatencyModel* predictor = predicts ? &predictors.learned_for(experiment) : nullptr;
  return run_jobs(experiment, policy, machine, traces, predictor);
}

}  // namespace spillway
