#pragma once

#include "analysis/lifetimes.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// The time that kernels of an iteration must wait for memory, whatever the plan, where each starts only when all that
// it touches is there, and keeps it until it ends. When a kernel ends, the device holds what it has touched, and what
// later kernels use of what there is by then, less what fits beside that, still has to come: at this rate at best,
// until the later ones start. What runs in between is not waited for; the waits of stretches that lie apart add up.
// Tensors in parts may be anywhere; sparse accesses count nothing.
//
// A lower bound: stretches begin with one of 128 kernels, end in the same iteration, and nothing is said of the way
// out. O(128 accesses).
//
// `host`: what a tier between the device and the link of that rate takes; zero: there is none.
Nanos least_wait(const Trace& trace, const Lifetimes& lifetimes, Bytes device, Bytes host, BytesPerSecond rate);

}  // namespace spillway
