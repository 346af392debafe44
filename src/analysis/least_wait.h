#pragma once

#include "analysis/lifetimes.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// The time that kernels of an iteration must wait for memory, whatever the plan: what a stretch of kernels uses, less
// the capacity, was not there when the stretch began, and comes at this rate at best while the kernels run. The waits
// of stretches that lie apart add up. Tensors in parts may be anywhere; sparse accesses count nothing.
//
// A lower bound: stretches begin at one of 128 kernels, end in the same iteration, and nothing is said of the way out.
// O(128 accesses).
Nanos least_wait(const Trace& trace, const Lifetimes& lifetimes, Bytes capacity, BytesPerSecond rate);

}  // namespace spillway
