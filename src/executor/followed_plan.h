#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "executor/foresight.h"
#include "memory/tier.h"
#include "plan/plan.h"

namespace spillway {

using PlanId = Id<struct PlanTag>;  // tells a plan from those that a run follows before and after it

// A plan as an executor follows it, and what its iteration does with memory, where that is known.
struct FollowedPlan {
  PlanId id{};
  std::uint32_t kernels = 0;  // of an iteration
  Plan commands = {};         // valid for such an iteration (plan/validate.h)
  // Where the plan's tensors lie; blocks may be shared. Empty: they are those that Allocated tells of, and blocks that
  // several share stay. Else a planned kernel starts when its whole working set is there, if that fits.
  std::vector<BlockRange> homes = {};
  std::vector<Foresight::Row> rows = {};             // when blocks are used
  std::vector<std::vector<BlockRange>> births = {};  // by kernel: what it touches first
};

}  // namespace spillway
