#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/block_trace.h"
#include "plan/machine_model.h"
#include "recorder/iteration.h"
#include "runtime/given_plan.h"
#include "runtime/run_figures.h"
#include "runtime/run_plan.h"
#include "runtime/run_policy.h"

namespace spillway {

// Memory of the device that no plan counts on: what is on its way takes a place at both of its ends.
constexpr Bytes spare_memory(Bytes block_bytes) { return block_bytes * 8; }

// Where a plan puts what its iteration makes.
struct BirthPlaces {
  Places places;     // by TensorId; nothing for what may lie anywhere
  BlockRange apart;  // they all lie in here
};

// What was found out about a run, and what it may use.
struct PlanningInput {
  PlanId id{};  // of the plan that is to be made
  RecordedIteration iteration{};
  Places persistent{};   // where the tensors that persist lie; nothing for those that no plan moves
  MachineModel machine;  // its device's memory is the most that a plan may count on
  Bytes budget;          // all of the device's memory
  Bytes block_bytes = kBlockBytes;
  Bytes unplanned{};  // of that, what no plan counts on
  RunPolicy policy;
  const GivenPlan* given = nullptr;     // to be followed if it is for this iteration
  std::optional<BirthPlaces> places{};  // of what this iteration makes, if it was planned for before
};

// A plan for a run, and how to recognise its iteration.
struct Proposal {
  std::uint64_t iteration = 0;  // its number
  PlanFigures figures;
  RunPlan run;
  Trace blocks;  // what it was made for: the iteration as the run's memory sees it
  BirthPlaces places;
  std::vector<std::uint64_t> signatures;  // by kernel
  std::uint32_t kernels_with_data = 0;    // of these, those that use or make managed memory
  std::vector<std::uint32_t> anchors;
  // By kernel: where to put what it makes, in order; nothing for what may lie anywhere.
  std::vector<std::vector<std::optional<std::uint64_t>>> births;
};

// What a run of a recorded iteration would take with this much memory on the device.
struct Prediction {
  Bytes device;
  std::optional<Nanos> iteration;  // nothing: no plan can be made for so little
  std::string policy;              // empty: nothing would move
};
// For each budget; `goes_on` is asked before each planning, and it fails when the user does not want to wait any more.
Result<std::vector<Prediction>> predict(const Trace& trace, MachineModel machine, Bytes block_bytes,
                                        const RunPolicy& policy, std::span<const Bytes> budgets,
                                        const std::function<bool()>& goes_on);

// Addresses for so many bytes, or nothing if there are not enough.
using SetApart = std::function<std::optional<BlockRange>(Bytes)>;

struct PlanningResult {
  std::unique_ptr<Proposal> plan;  // null: none is needed
  std::string refused;             // why the given one is not it
};
// The given plan, if it is for the iteration as the run's memory sees it. Else every planner that the policy allows
// plans for that, each plan is simulated, and the one is taken whose iteration costs least, by its time and by its
// moves; nothing if demand paging is as good.
Result<PlanningResult> plan_run(const PlanningInput& input, const SetApart& set_apart);

}  // namespace spillway
