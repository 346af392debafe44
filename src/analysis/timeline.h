#pragma once

#include <vector>

#include "analysis/lifetimes.h"
#include "base/ids.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// When each kernel runs if every tensor is always on the device: durations and host gaps one after the other.
struct Timeline {
  std::vector<Nanos> start;  // by kernel
  std::vector<Nanos> end;
  Nanos iteration;

  Nanos start_of(KernelId id) const { return start[id.value]; }
  Nanos end_of(KernelId id) const { return end[id.value]; }
};

Timeline ideal_timeline(const Trace& trace);

// How long the tensor is unused: to the next use's start, in the next iteration if the period wraps.
Nanos time_of(const InactivePeriod& period, const Timeline& timeline);

}  // namespace spillway
