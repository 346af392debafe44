#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace spillway {

// Note [Recomputation]
// A program that recomputes is another program: it frees a tensor early, runs kernels twice, and goes on with another
// tensor of the same size. So nothing below needs to know of recomputation: the trace and the plan are rewritten, and
// what reads a discarded tensor is found as a read of freed memory.
struct Recomputed {
  Trace trace;                  // with the replays as kernels of their own
  Plan plan;                    // the moves, by that trace's kernels and tensors; without recomputations, and reckoned
  std::vector<bool> is_replay;  // by kernel of that trace
  std::vector<KernelId> original_of;  // by kernel of that trace
  Nanos replaying;                    // the durations of all replays

  std::uint64_t replays() const;
};

// Checks and applies the plan's recomputations. The error names the command, and says why it is none. What is checked:
//  - from drop_after to before is one inactive period, and the tensor does not outlive the iteration;
//  - each kernel of the chain can be replayed, and the last one is the tensor's last writer, which does not omit it;
//  - what a replay reads is alive then, and as the kernel found it the first time, or the chain has made it.
Result<Recomputed> with_recomputations(const Trace& trace, const Plan& plan, const std::string& where);

}  // namespace spillway
