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
// A lower bound: stretches end in the iteration in which they begin, and nothing is said of the way out. Each kernel
// begins one; of iterations whose stretches take more than 30 million looks at accesses 64 kernels or more, so that
// the time is bounded by these, or grows as the accesses do.
//
// `host`: what a tier between the device and the link of that rate takes; zero: there is none.
Nanos least_wait(const Trace& trace, const Lifetimes& lifetimes, Bytes device, Bytes host, BytesPerSecond rate);

}  // namespace spillway
