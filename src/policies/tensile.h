#pragma once

#include <array>
#include <span>
#include <vector>

#include "plan/parameters.h"
#include "plan/plan.h"

namespace spillway {

struct Problem;

inline constexpr std::array kTensileParameters{
    ParameterSpec{"swap-limit", 1, 0, 1, false,
                  "the most of a job's tensors that are swapped, as a part (section IV-C)"},
    ParameterSpec{"shrink", 0, 0, 1, true,
                  "1: lowers the peak even where all fits, as published; 0: then nothing moves"}};

// TENSILE's Algorithms 1 to 3 for jobs that share a device (sections IV-B to IV-D). A plan a job, in their order.
std::vector<Plan> plan_tensile_jobs(std::span<const Problem> jobs);

}  // namespace spillway
