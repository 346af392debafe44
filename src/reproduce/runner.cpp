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
#include "policies/policies.h"
#include "reproduce/outcome_file.h"
#include "reproduce/predictors.h"
#include "reproduce/run_experiment.h"

namespace spillway {
namespace {

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
    return bytes.at(one.model) * std::max<std::uint64_t>(1, one.iterations) * (1 + one.beside.size()) *
           (has_pool                            ? kPool
            : policy && policy->plan == nullptr ? kPaging
                                                : 1);
  };
  std::ranges::stable_sort(experiments, [&](const Experiment& a, const Experiment& b) { return guess(a) > guess(b); });
}

// Runs what is left of the list, one after the other; several do so at a time.
class Workers {
 public:
  Workers(std::vector<Experiment> experiments, const Traces& traces, const RunnerOptions& options,
          const std::function<void(std::size_t)>& progress)
      : experiments_(std::move(experiments)),
        traces_(traces),
        predictors_(traces),
        options_(options),
        progress_(progress) {}

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
  Result<Outcome> outcome_at(const Experiment& experiment, bool& cached) {
    TRY(const std::string key, key_of(experiment, traces_, options_.program));
    const std::string file = options_.cache_folder.empty() ? "" : options_.cache_folder + "/" + cache_file_name(key);
    if (!file.empty())
      if (const auto text = read_file(file, 1_MiB))
        if (auto kept = from_cache_text(*text, key)) {
          cached = true;
          return *std::move(kept);
        }
    TRY(Outcome outcome, run_experiment(experiment, traces_, predictors_));
    if (!file.empty()) (void)write_file(file, to_cache_text(outcome, key));  // Without it, it is simulated again.
    return outcome;
  }

  const std::vector<Experiment> experiments_;
  const Traces& traces_;
  Predictors predictors_;
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
