#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "memory/tier.h"

namespace spillway {

// Another job on the same device. It arrives when the one before it could have run so many of its iterations alone.
struct ExperimentJob {
  std::string model;
  std::uint32_t after = 0;

  friend auto operator<=>(const ExperimentJob&, const ExperimentJob&) = default;
};

// One simulation of an evaluation: a trace, a policy, a machine and what is changed of it. A value: equal ones are run
// once.
struct Experiment {
  std::string model;   // whose trace
  std::string policy;  // as policy_by_name() takes it
  std::string machine = "a100";
  std::vector<std::string> overrides = {};  // "host.memory=0", as of --set
  std::uint64_t noise_percent = 0;          // as of --noise, seed 0
  std::uint32_t estimates_percent = 100;    // what kernels take of the trace's times, if these are estimates
  std::uint32_t bytes_percent = 100;        // how large tensors are of the trace's, if it is a dry run's, too
  // As jobs: so many iterations of the model, and of each job beside it. Zero: the model alone, until its iterations
  // are steady.
  std::uint32_t iterations = 0;
  std::vector<ExperimentJob> beside = {};
  // Of jobs: until an iteration was measured, plans reckon with times that networks have learned from these models'
  // traces. Empty: with exact ones.
  std::vector<std::string> learned_from = {};
  // The device has as much memory as the same needs under this policy, which alone has the predicted times. Empty: as
  // much as the machine says.
  std::string budget_of = {};

  friend auto operator<=>(const Experiment&, const Experiment&) = default;
};

// Whose traces it needs.
std::vector<std::string> models_of(const Experiment& experiment);

// What the figures of papers need of a simulation's result. Times are seconds of the steady iteration. Of jobs all are
// means over the jobs: of their iterations, and in place of the ideal one of those without a policy and without a
// limit.
struct Outcome {
  bool feasible = false;  // if not, the rest means nothing
  double iteration_seconds = 0, ideal_seconds = 0;
  double first_iteration_seconds = 0;
  double stall_seconds = 0;
  double hidden_seconds = 0;                      // while something moved, a kernel computed; not of jobs
  std::uint64_t faults = 0;                       // blocks that came by page faults; not of jobs
  std::uint64_t kernels = 0, slowed_kernels = 0;  // not of jobs
  std::vector<double> slowdown = {};              // of kernels: the least, 1 % of them, ..., the most; not of jobs
  Bytes peak = {}, unlimited_peak = {};           // of the device, and that without a policy and without a limit
  PerLink<Bytes> moved;
  std::optional<double> flash_years = {};  // until its flash is worn out; nothing: for ever, or it has none
};

// A kernel counts as slowed that takes one percent longer than alone.
inline constexpr double kSlowed = 1.01;

}  // namespace spillway
