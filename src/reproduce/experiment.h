#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "memory/tier.h"

namespace spillway {

// One simulation of an evaluation: a trace, a policy, a machine and what is changed of it. A value: equal ones are run
// once.
struct Experiment {
  std::string model;   // whose trace
  std::string policy;  // as policy_by_name() takes it
  std::string machine = "a100";
  std::vector<std::string> overrides = {};  // "host.memory=0", as of --set
  std::uint64_t noise_percent = 0;          // as of --noise, seed 0

  friend auto operator<=>(const Experiment&, const Experiment&) = default;
};

// What the figures of papers need of a simulation's result. Times are seconds of the steady iteration.
struct Outcome {
  bool feasible = false;  // if not, the rest means nothing
  double iteration_seconds = 0, ideal_seconds = 0;
  double hidden_seconds = 0;  // while something moved, a kernel computed
  std::uint64_t faults = 0;   // blocks that came by page faults
  std::uint64_t kernels = 0, slowed_kernels = 0;
  std::vector<double> slowdown = {};  // of kernels: the least, 1 % of them, ..., the most
  PerLink<Bytes> moved;
  std::optional<double> flash_years = {};  // until its flash is worn out; nothing: for ever, or it has none
};

// A kernel counts as slowed that takes one percent longer than alone.
inline constexpr double kSlowed = 1.01;

}  // namespace spillway
