#pragma once

#include <string>

#include "analysis/lifetimes.h"
#include "base/result.h"
#include "plan/machine_model.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace spillway {

// Tensors below this share blocks with others (G10 section 4.5), so planned moves leave them alone.
inline constexpr Bytes kLeastMovedBytes = 4_KiB;

// The place of a kernel within an inactive period, counted in kernels from its start; `kernels` is the iteration's
// length.
constexpr std::uint32_t place_in(const InactivePeriod& period, KernelId kernel, std::uint32_t kernels) {
  return (kernel.value + kernels - period.after.value) % kernels;
}
// How many kernels after its start the tensor is used again.
constexpr std::uint32_t length_of(const InactivePeriod& period, std::uint32_t kernels) {
  const std::uint32_t apart = place_in(period, period.before, kernels);
  return apart == 0 ? kernels : apart;
}

// Refuses a plan that cannot be meant: commands for unknown, dead or small tensors, an eviction inside a use, a
// prefetch without an eviction before it, more in host memory (if the policy uses it) or on the SSD than fits, commands
// out of order. The error begins with `where`, the plan's file, and names the command. Nothing runs a plan that has not
// passed here. A plan made for another trace (by its hash) is refused, one for another machine is not: its capacities
// are checked here and its times are only worse.
Result<> validate_plan(const Plan& plan, const Trace& trace, const std::string& trace_hash, const Lifetimes& lifetimes,
                       const MachineModel& machine, bool uses_host = true, const std::string& where = "plan");

}  // namespace spillway
