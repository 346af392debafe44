#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/lifetimes.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/tier.h"
#include "plan/machine_model.h"
#include "plan/plan.h"
#include "plan/policy_traits.h"
#include "timeline/run_timeline.h"
#include "trace/trace.h"

namespace spillway {

// What the SSD's flash has done.
struct FlashWear {
  struct Part {
    Bytes host_written;        // what came to it, in whole pages
    Bytes written;             // and what collecting garbage wrote again
    std::uint64_t erases = 0;  // of superblocks
    double write_amplification = 1;
  };
  Part iteration;               // the steady one
  Part all;                     // iterations
  std::optional<double> years;  // until it is worn out, if it goes on like the steady iteration; nothing: for ever
};

// A kernel of the last iteration, in the order in which they ran.
struct SimulatedKernel {
  KernelId kernel;  // of the trace
  bool is_replay = false;
  Nanos duration, wait;
  Nanos hidden;  // so long something moved while it computed

  // Of its time without waiting (G10, Figure 12).
  double slowdown() const { return duration == Nanos{} ? 1 : seconds(duration + wait) / seconds(duration); }
};

// What one trace costs on one machine under one policy. Times are those of the steady iteration unless named otherwise.
struct SimulationResult {
  bool feasible = true;
  PerTier<Bytes> shortfall;  // what is missing where, if it is not feasible; then the rest means nothing
  bool steady = false;       // two iterations in a row within 0.01 % and with the same residency at their ends
  Nanos iteration, cold_iteration, ideal;
  std::uint64_t stalled_kernels = 0;
  std::uint64_t faults = 0;  // blocks that came by page faults
  PerLink<Bytes> moved;
  Bytes dropped_clean;           // left the device without being copied, since the SSD had the same bytes already
  PerTier<Bytes> peak;           // of all iterations
  std::uint32_t iterations = 0;  // simulated
  std::uint32_t warmup_iterations = 0;   // before the steady one
  std::uint64_t recomputed_kernels = 0;  // in each iteration, and their durations
  Nanos recompute;
  Nanos hidden;                        // while something moved, a kernel computed
  std::uint64_t skipped_commands = 0;  // of all iterations: the tensor was not where the plan expected it
  std::optional<FlashWear> flash;      // if the machine has some
  std::vector<SimulatedKernel> kernels = {};

  Nanos stall() const { return excess(iteration, ideal); }
  double percent_of_ideal() const { return iteration.value == 0 ? 100.0 : 100.0 * seconds(ideal) / seconds(iteration); }
};

// The largest tensors-at-once of a kernel must fit the device where kernels cannot fault, and all that is alive at a
// time must fit all tiers that the policy may use. Zeroes if so; otherwise the bytes missing.
PerTier<Bytes> shortfall(const Lifetimes& lifetimes, const MachineModel& machine, const PolicyTraits& traits);

// What the executor knows of a plan's iteration: its commands alone, or also what a real run tells it
// (Executor::Iteration). That has nothing of tensors that are carried under another id, for these change their blocks.
enum class Foreknowledge : std::uint8_t { commands, iteration };

// Runs the trace on the simulated machine until its iterations are steady: at most 20, else the mean of the last 10.
// Deterministic. The plan, if any, must have passed the validator for this trace and machine. The last iteration is
// written to `timeline`, if that is given; it stays as it is where the result is infeasible.
Result<SimulationResult> simulate(const Trace& trace, const Lifetimes& lifetimes, const MachineModel& machine,
                                  const PolicyTraits& traits, const Plan* plan,
                                  Foreknowledge foreknowledge = Foreknowledge::commands,
                                  RunTimeline* timeline = nullptr);

}  // namespace spillway
