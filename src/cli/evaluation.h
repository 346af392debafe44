#pragma once

#include <nlohmann/json_fwd.hpp>
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

Result<Case> load_case(const std::string& trace_path, MachineModel machine, std::optional<Noise> noise = {});

// Plans, passes the plan through the same validator as an edited one, and simulates. An infeasible case is a result.
// What happens in the last iteration is written to `timeline`, if that is given and the case is feasible.
Result<Evaluation> evaluate(const Policy& policy, const Case& input, RunTimeline* timeline = nullptr);
// The same for a plan from a file; the policy that it names says how what it leaves open is handled.
Result<Evaluation> evaluate(Plan plan, const std::string& file, const Case& input, RunTimeline* timeline = nullptr);

// "2 GiB more device memory", of a shortfall that is not zero.
std::string missing_text(const PerTier<Bytes>& shortfall);

// "g10 for bert on a100"; says also what is missing and ends the line, if it is infeasible.
std::string title_of(const Evaluation& evaluation, const Case& input);

// "a100", or "each of 4 devices of a100".
std::string text_of(const MachineModel& machine);

// "Kernels take up to 20 % more or less", of a case with noise; else nothing.
std::string noise_text(const Case& input);

// `machine` and `trace` as every report has them, and `noise` if there is any.
nlohmann::ordered_json new_report(const Case& input);
// The fields of a simulation's result, from `policy` to `wall_seconds`, appended; times are null if it is infeasible.
void append_result(nlohmann::ordered_json& object, const Evaluation& evaluation);

}  // namespace spillway
