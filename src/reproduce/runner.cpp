#include "reproduce/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/files.h"
#include "base/mutex.h"
#include "evaluation/evaluate.h"
#include "plan/machine_file.h"
#include "reproduce/outcome_file.h"

namespace spillway {
namespace {

constexpr std::size_t kHundredths = 100;  // that a distribution of slowdowns is kept in

Outcome outcome_of(const SimulationResult& result) {
  Outcome outcome{.feasible = result.feasible, .moved = {}};
  if (!result.feasible) return outcome;
  outcome.iteration_seconds = seconds(result.iteration);
  outcome.ideal_seconds = seconds(result.ideal);
  outcome.hidden_seconds = seconds(result.hidden);
  outcome.faults = result.faults;
  outcome.moved = result.moved;
  if (result.flash) outcome.flash_years = result.flash->years;
  std::vector<double> slowdown;
  for (const SimulatedKernel& kernel : result.kernels) slowdown.push_back(kernel.slowdown());
  std::ranges::sort(slowdown);
  outcome.kernels = slowdown.size();
  outcome.slowed_kernels =
      static_cast<std::uint64_t>(std::ranges::count_if(slowdown, [](double one) { return one > kSlowed; }));
  for (std::size_t part = 0; part <= kHundredths && !slowdown.empty(); ++part)
    outcome.slowdown.push_back(slowdown[part * (slowdown.size() - 1) / kHundredths]);
  return outcome;
}

Result<MachineModel> machine_of(const Experiment& experiment) {
  TRY(MachineModel machine, load_machine(experiment.machine));
  for (const std::string& change : experiment.overrides) TRY_VOID(apply_override(machine, change));
  TRY_VOID(check_machine(machine));
  return machine;
}

// All that an outcome depends on.
std::string key_of(const Experiment& experiment, const MachineModel& machine, const Policy& policy,
                   const std::string& trace_hash, const std::string& program) {
  return fmt::format("trace={} machine={} policy={} noise={} program={}", trace_hash, machine.hash, text_of(policy),
                     experiment.noise_percent, program);
}

// So that no thread is left alone with one at the end. How long one takes is a guess: pages take longer than plans, and
// more bytes longer than fewer.
void start_with_longest(std::vector<Experiment>& experiments, const Traces& traces) {
  std::map<std::string, std::uint64_t> bytes;
  for (const auto& [model, loaded] : traces)
    for (const Tensor& tensor : loaded.trace.tensors) bytes[model] += tensor.bytes.value;
  const auto guess = [&](const Experiment& one) {
    constexpr std::uint64_t kPaging = 4, kPool = 32;
    const auto policy = policy_by_name(one.policy);
    const bool has_pool = one.policy.find("pool=1") != std::string::npos;
    return bytes.at(one.model) * (has_pool ? kPool : policy && policy->plan == nullptr ? kPaging : 1);
  };
  std::ranges::stable_sort(experiments, [&](const Experiment& a, const Experiment& b) { return guess(a) > guess(b); });
}

// Runs what is left of the list, one after the other; several do so at a time.
class Workers {
 public:
  Workers(std::vector<Experiment> experiments, const Traces& traces, const RunnerOptions& options,
          const std::function<void(std::size_t)>& progress)
      : experiments_(std::move(experiments)), traces_(traces), options_(options), progress_(progress) {}

  void work() {
    for (std::size_t at = next_++; at < experiments_.size(); at = next_++) {
      {
        const MutexLock lock(mutex_);
        if (error_) return;
      }
      bool cached = false;
      auto outcome = outcome_at(experiments_[at], cached);
      const MutexLock lock(mutex_);
      if (!outcome) {
        if (!error_) error_ = std::move(outcome).error();
        return;
      }
      result_.outcomes.emplace(experiments_[at], *std::move(outcome));
      ++(cached ? result_.count.from_cache : result_.count.simulated);
      progress_(result_.outcomes.size());
    }
  }

  Result<RunResult> result() {
    const MutexLock lock(mutex_);
    if (error_) return std::unexpected(*error_);
    return std::move(result_);
  }

 private:
  Result<Outcome> outcome_at(const Experiment& experiment, bool& cached) const {
    const LoadedTrace& loaded = traces_.at(experiment.model);
    TRY(MachineModel machine, machine_of(experiment));
    TRY(const Policy policy, policy_by_name(experiment.policy));
    const std::string key = key_of(experiment, machine, policy, loaded.hash, options_.program);
    const std::string file = options_.cache_folder.empty() ? "" : options_.cache_folder + "/" + cache_file_name(key);
    if (!file.empty())
      if (const auto text = read_file(file, 1_MiB))
        if (auto kept = from_cache_text(*text, key)) {
          cached = true;
          return *std::move(kept);
        }
    const auto noise = experiment.noise_percent == 0
                           ? std::nullopt
                           : std::optional(Noise{.percent = experiment.noise_percent, .seed = 0});
    const Case input = case_of(loaded, std::move(machine), noise);
    TRY(const Evaluation evaluation, evaluate(policy, input));
    Outcome outcome = outcome_of(evaluation.result);
    if (!file.empty()) (void)write_file(file, to_cache_text(outcome, key));  // Without it, it is simulated again.
    return outcome;
  }

  const std::vector<Experiment> experiments_;
  const Traces& traces_;
  const RunnerOptions& options_;
  const std::function<void(std::size_t)>& progress_;
  std::atomic<std::size_t> next_ = 0;
  Mutex mutex_;
  std::optional<Error> error_ SPILLWAY_GUARDED_BY(mutex_);
  RunResult result_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace

Result<RunResult> run_experiments(std::span<const Experiment> experiments, const Traces& traces,
                                  const RunnerOptions& options, const std::function<void(std::size_t done)>& progress) {
  if (!options.cache_folder.empty()) {
    std::error_code none;
    std::filesystem::create_directories(options.cache_folder, none);
  }
  const std::set<Experiment> distinct(experiments.begin(), experiments.end());
  std::vector<Experiment> ordered(distinct.begin(), distinct.end());
  start_with_longest(ordered, traces);
  const std::size_t count = ordered.size();
  Workers workers(std::move(ordered), traces, options, progress);
  std::vector<std::jthread> threads;
  for (unsigned n = 1; n < options.jobs && n < count; ++n)
    threads.emplace_back([&workers]() noexcept { workers.work(); });
  workers.work();
  threads.clear();
  return workers.result();
}

}  // namespace spillway
