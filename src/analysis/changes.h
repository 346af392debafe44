#pragma once

#include <vector>

#include "analysis/lifetimes.h"
#include "base/ids.h"
#include "trace/trace.h"

namespace spillway {

// By tensor: the kernels after which it has other bytes than before, ascending: those that write to it, and the one
// that it is born at. Time grows with the trace's accesses.
std::vector<std::vector<KernelId>> changes_of(const Trace& trace, const Lifetimes& lifetimes);

}  // namespace spillway
