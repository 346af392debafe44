#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "plan/parameters.h"
#include "plan/plan.h"
#include "plan/policy_traits.h"

namespace spillway {

struct Problem;

inline constexpr std::array kTensileParameters{
    ParameterSpec{"swap-limit", 1, 0, 1, false,
                  "the most of a job's tensors that are swapped, as a part (section IV-C)"},
    ParameterSpec{"shrink", 0, 0, 1, true,
                  "1: lowers the peak even where all fits, as published; 0: then nothing moves"},
    file_parameter("cold-start",
                   "of `spillway fit-latencies`: the first plan reckons with its times, as if nothing were measured "
                   "(section IV-A)")};

// TENSILE's Algorithms 1 to 3 for jobs that share a device (sections IV-B to IV-D). A plan a job, in their order.
std::vector<Plan> plan_tensile_jobs(std::span<const Problem> jobs);

// Its update (section IV-E): another plan where kernels take so much more or less time than this one reckons with, and
// after the first iteration where those times were predicted.
std::optional<Plan> revise_tensile(const PastIteration& iteration, const Plan& plan);
// What the new plan reckons with; nothing: the plan stays.
std::optional<Reckoned> reckon_again(const Reckoned& reckoned, const Trace& measured);

}  // namespace spillway
