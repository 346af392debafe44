#pragma once

#include <algorithm>
#include <vector>

#include "executor/executor.h"
#include "executor/followed_plan.h"

namespace spillway {

// At which kernels of a plan the executor has something to do at once. Whoever tells of kernels late, many at a time,
// must tell of these when they start or end. Any thread.
struct Attention {
  explicit Attention(const FollowedPlan& plan) : at_start(plan.kernels), at_end(plan.kernels) {
    for (const Prefetch& prefetch : plan.commands.prefetches) at_start[prefetch.at.value] = true;
    for (const Eviction& eviction : plan.commands.evictions) at_end[eviction.after.value] = true;
  }

  std::vector<bool> at_start, at_end;  // by kernel
};

// Whether the executor has frames to get when this kernel starts, for what those after it make.
template <class HasFrame>
bool lacks_frames_ahead(const FollowedPlan& plan, KernelId kernel, HasFrame&& has_frame) {
  const std::size_t end = std::min<std::size_t>(plan.births.size(), kernel.value + Executor::kBirthsAhead);
  for (std::size_t next = kernel.value + 1; next < end; ++next)
    for (const BlockRange& blocks : plan.births[next])
      for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
        if (!has_frame(block)) return true;
  return false;
}

}  // namespace spillway
