#pragma once

#include <string>
#include <vector>

#include "analysis/lifetimes.h"
#include "base/units.h"
#include "memory/tier.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace spillway {

// The iteration as an instrumented program, line by line, as in G10's figure 9: each kernel with what is allocated and
// prefetched just before it and what is freed and evicted just after. The plan must have passed the validator for this
// trace. Kernels' names are foreign text: make them printable() before a terminal sees them.
std::vector<std::string> listing(const Plan& plan, const Trace& trace, const Lifetimes& lifetimes);

// What leaves for a tier in an iteration, or the most that can be said where that is more.
Bytes evicted_to(Tier tier, const Plan& plan, const Trace& trace);

}  // namespace spillway
