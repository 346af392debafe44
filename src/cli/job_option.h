#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/machine_option.h"
#include "machines/sim/simulate_jobs.h"
#include "policies/policies.h"
#include "trace/noise.h"

namespace spillway {

// `--job A.trace:weight=2,arrival=3s,iterations=50`, as often as there are jobs.
struct JobOption {
  std::vector<std::string> texts;

  void add_to(CLI::App& command);
  // A TRACE, or jobs: one of them.
  Result<> check(const std::string& trace) const;
  // --noise is not for jobs.
  Result<> refuse(const std::optional<Noise>& noise) const;
  bool is_used() const { return !texts.empty(); }
};

// Several jobs on one device under each of the policies, beside the same without a policy and without a limit.
Result<int> run_jobs(const JobOption& option, const std::vector<Policy>& policies, MachineModel machine, bool json);

}  // namespace spillway
