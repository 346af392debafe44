#pragma once

#include <array>
#include <string_view>

#include "analysis/lifetimes.h"
#include "base/result.h"
#include "plan/machine_model.h"
#include "plan/plan.h"
#include "plan/policy_traits.h"
#include "policies/deepum.h"
#include "policies/deepum_faults.h"
#include "policies/tensile.h"
#include "policies/vdnn.h"
#include "trace/trace.h"

namespace spillway {

struct Problem {
  const Trace& trace;
  const Lifetimes& lifetimes;
  const MachineModel& machine;
  Parameters parameters = {};
};

// A plan is a function of the problem alone: no clock, no input or output, no globals, no hidden randomness. It fills
// the commands and `overcommitted`; whose plan it is, the caller writes in.
using PlanFn = Plan (*)(const Problem&);
Plan plan_g10_gds(const Problem& problem);         // g10.cpp
Plan plan_g10(const Problem& problem);             // g10.cpp
Plan plan_g10_clean(const Problem& problem);       // g10.cpp
Plan plan_g10_once(const Problem& problem);        // g10.cpp
Plan plan_furthest(const Problem& problem);        // furthest.cpp
Plan plan_furthest_ahead(const Problem& problem);  // furthest.cpp
Plan plan_furthest_lean(const Problem& problem);   // furthest.cpp

Plan plan_tensile(const Problem& problem);                                              // tensile.cpp
Plan plan_vdnn(const Problem& problem);                                                 // vdnn.cpp
Plan plan_capuchin(const Problem& problem);                                             // capuchin.cpp
std::optional<Plan> revise_capuchin(const PastIteration& iteration, const Plan& plan);  // capuchin.cpp
Plan plan_flashneuron(const Problem& problem);                                          // flashneuron.cpp

struct Policy {
  std::string_view name, summary;
  PolicyTraits traits;  // with its parameters
  PlanFn plan;          // null: nothing is planned
};

inline constexpr std::array kUvmParameters{
    ParameterSpec{"pool", 0, 0, 1, true,
                  "1: simulated tensors lie in PyTorch's pool, whose dead bytes move, too (DeepUM, section 5.2)"}};

// The whole plug-in mechanism: one file and one line a policy.
inline constexpr std::array kPolicies{
    Policy{"ideal", "a device that holds everything: the upper limit", {.unlimited_device = true}, nullptr},
    Policy{"uvm",
           "demand paging, the least recently migrated block leaves",
           {.parameters = Parameters(kUvmParameters)},
           nullptr},
    Policy{"deepum",
           "demand paging that learns which kernels follow each other and brings what the next ones use",
           {.online = make_deepum, .parameters = Parameters(kDeepumParameters)},
           nullptr},
    Policy{"deepum-clean",
           "deepum, and what a tier below still has leaves the device without being copied",
           {.keeps_copies = true, .online = make_deepum, .parameters = Parameters(kDeepumParameters)},
           nullptr},
    Policy{"deepum-faults",
           "DeepUM as published: what kernels use it learns from their page faults alone",
           {.online = make_deepum_faults, .parameters = Parameters(kDeepumFaultsParameters)},
           nullptr},
    Policy{"g10-gds",
           "G10's planned moves between device and SSD",
           {.kernels_fault = false, .uses_host = false},
           plan_g10_gds},
    Policy{"g10-host", "G10's planned moves, host memory where the SSD is busy", {.kernels_fault = false}, plan_g10},
    Policy{"g10", "the same in one unified memory: what is absent comes by page faults", {}, plan_g10},
    Policy{
        "g10-clean", "g10, and what a tier below still has leaves the device without being copied", {}, plan_g10_clean},
    Policy{"g10-once", "g10 with Algorithm 1 as published: made once, as if kernels never waited", {}, plan_g10_once},
    Policy{"furthest",
           "what is needed furthest in the future leaves, and comes back as early as it fits",
           {},
           plan_furthest},
    Policy{"furthest-ahead", "furthest, and what leaves does so before its room is needed", {}, plan_furthest_ahead},
    Policy{"furthest-lean",
           "furthest-ahead that rather waits than moves more, above all to the SSD",
           {},
           plan_furthest_lean},
    Policy{"tensile",
           "TENSILE: tensors at the peak leave and return while one channel is idle, or are computed again",
           {.kernels_fault = false,
            .uses_ssd = false,
            .whole_tensors_leave = true,
            .keeps_copies = true,
            .revise = revise_tensile,
            .recomputes_first = true,
            .parameters = Parameters(kTensileParameters)},
           plan_tensile},
    Policy{"capuchin",
           "Capuchin: after a first iteration without a plan, what is unused longest leaves, or is computed again",
           {.kernels_fault = false,
            .uses_ssd = false,
            .whole_tensors_leave = true,
            .plans_from_second = true,
            .revise = revise_capuchin,
            .takes_back = true},
           plan_capuchin},
    Policy{"vdnn",
           "vDNN: what convolutions read leaves during them, and comes back kernel by kernel",
           {.kernels_fault = false,
            .uses_ssd = false,
            .whole_tensors_leave = true,
            .parameters = Parameters(kVdnnParameters)},
           plan_vdnn},
    Policy{"flashneuron",
           "FlashNeuron: the forward pass's first tensors go to the SSD and come back in the backward pass",
           {.kernels_fault = false, .uses_host = false, .whole_tensors_leave = true},
           plan_flashneuron},
    Policy{"lms",
           "IBM's Large Model Support: without room an inactive tensor leaves, the oldest first, and all wait",
           {.kernels_fault = false, .uses_ssd = false, .whole_tensors_leave = true, .least_victim = Bytes{1 << 20}},
           nullptr},
    Policy{"lms-mod",
           "LMS as DeepUM's authors changed it against fragments: the same here, where nothing fragments",
           {.kernels_fault = false, .uses_ssd = false, .whole_tensors_leave = true, .least_victim = Bytes{1 << 20}},
           nullptr},
};

// Whether a real run can follow it: kernels start before all that they touch is known, so they must be able to fault.
constexpr bool runs_for_real(const Policy& policy) {
  return policy.traits.kernels_fault && !policy.traits.unlimited_device;
}

// "g10", or with parameters "deepum:ahead=16". Errors list the names there are, and say what a parameter may be.
Result<Policy> policy_by_name(std::string_view text);
std::string text_of(const Policy& policy);  // as policy_by_name() takes it
std::string policy_names();                 // "ideal, uvm, ..."
std::string policy_summaries();             // a line each, for helps

}  // namespace spillway
