#pragma once

#include <optional>
#include <string>

#include "analysis/lifetimes.h"
#include "base/result.h"
#include "machines/sim/simulate.h"
#include "plan/machine_model.h"
#include "plan/plan.h"
#include "policies/policies.h"
#include "trace/format.h"
#include "trace/noise.h"

namespace spillway {

// What the commands plan, simulate and compare work on.
struct Case {
  LoadedTrace loaded;
  Lifetimes lifetimes;
  MachineModel machine;
  std::optional<Noise> noise = {};
  std::optional<Trace> noisy = {};  // with that

  // What is simulated; plans are made for what was loaded.
  const Trace& played() const { return noisy ? *noisy : loaded.trace; }
};

// One policy on one case: its plan, where it has one, and what the simulated machine makes of it.
struct Evaluation {
  Plan plan;  // policy and origin are always filled in
  SimulationResult result;
  double planning_seconds = 0;
  double simulating_seconds = 0;
};

// `noise`: kernels take other times than plans reckon with.
Case case_of(LoadedTrace loaded, MachineModel machine, std::optional<Noise> noise = {});
Result<Case> load_case(const std::string& trace_path, MachineModel machine, std::optional<Noise> noise = {});

// Plans, passes the plan through the same validator as an edited one, and simulates. An infeasible case is a result.
// What happens in the last iteration is written to `timeline`, if that is given and the case is feasible.
Result<Evaluation> evaluate(const Policy& policy, const Case& input, RunTimeline* timeline = nullptr);
// The same for a plan from a file; the policy that it names says how what it leaves open is handled.
Result<Evaluation> evaluate(Plan plan, const std::string& file, const Case& input, RunTimeline* timeline = nullptr);

// "a100", or "each of 4 devices of a100".
std::string text_of(const MachineModel& machine);

}  // namespace spillway
