#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "reproduce/experiment.h"
#include "reproduce/traces.h"

namespace spillway {

using Outcomes = std::map<Experiment, Outcome>;

struct RunnerOptions {
  unsigned jobs = 1;         // at a time
  std::string cache_folder;  // keeps outcomes; empty: none does
  std::string program;       // which program made them: another one's are not used
};

struct RunCount {
  std::size_t simulated = 0, from_cache = 0;
};

struct RunResult {
  Outcomes outcomes;
  RunCount count;
};

// Each experiment at most once; those that the cache has are not run at all. `progress` is told, from one thread at a
// time, how many are done. Stops at the first error.
Result<RunResult> run_experiments(std::span<const Experiment> experiments, const Traces& traces,
                                  const RunnerOptions& options, const std::function<void(std::size_t done)>& progress);

}  // namespace spillway
