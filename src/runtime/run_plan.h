#pragma once

#include <cstdint>
#include <vector>

#include "executor/foresight.h"
#include "memory/tier.h"
#include "plan/plan.h"

namespace spillway {

// A plan as a run follows it.
struct RunPlan {
  Plan plan;                                    // of rows of blocks
  std::vector<BlockRange> homes;                // of the plan's tensors
  std::vector<Foresight::Row> rows;             // when blocks are used
  std::vector<std::vector<BlockRange>> births;  // by kernel: what it touches first
  std::uint32_t kernels = 0;                    // of an iteration
  std::vector<bool> starts, ends;               // by kernel: commands hang on its start, on its end
};

// What is known of a kernel that is about to start.
struct NextKernel {
  const RunPlan* plan = nullptr;  // in whose iteration it has this place; valid until the kernel has ended
  KernelId kernel = kNoKernel;
  ExecutionId execution{};
};

}  // namespace spillway
