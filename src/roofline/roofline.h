#pragma once

#include <optional>
#include <string_view>

#include "base/units.h"
#include "roofline/device_rates.h"
#include "roofline/operations.h"
#include "trace/trace.h"

namespace spillway {

// Note [Roofline]
// A kernel takes as long as its arithmetic or its memory traffic, whichever is longer (Williams, Waterman and
// Patterson, "Roofline", CACM 2009), each at the part of the device's best rate that kernels of its class reach, and
// the time of a launch besides. The parts were fitted once to measured traces by bench/roofline, which also tells how
// far estimates are from what was measured (docs/simulation.md, "Dry runs").
struct Efficiency {  // parts of the device's best, above 0
  double operations, bandwidth;
};
struct Work {  // of a kernel
  double operations, bytes;
};
Efficiency efficiency_of(OperatorClass operators);

// Nanoseconds of a kernel of that class; `rates.are_known()`.
double roofline(OperatorClass operators, const Efficiency& part, const DeviceRates& rates, const Work& work);
// Of one that uses no tensor of the device: the least that there is.
Nanos estimated_time(const Kernel& kernel, const DeviceRates& rates);

// All kernels' times estimated for such a device; no gaps, since a host runs ahead of a GPU. `total`: what all of them
// together are known to take; their times are stretched to that. The trace says how it was made.
Trace with_estimated_times(Trace trace, const DeviceRates& rates, std::string_view machine,
                           std::optional<Nanos> total = {});

}  // namespace spillway
