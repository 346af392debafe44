#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "machines/cpu/eviction_method.h"
#include "memory/tier.h"
#include "runtime/run_figures.h"

namespace spillway {

// What a run came to.
struct RunReport {
  struct Iteration {
    Nanos duration;
    std::uint64_t steps = 1;  // of optimizers
    std::uint64_t faults = 0;
    Bytes in, out;                                   // moved to the device and from it
    Nanos waited;                                    // in which some thread waited for memory
    std::uint64_t kernels = 0, planned_kernels = 0;  // that used managed memory; of these, a plan's
    bool planned = false;                            // it followed a plan
  };
  struct PlanTaken {
    std::string policy;
    std::uint64_t iteration = 0;  // the recorder's, that it is for
    Nanos predicted, predicted_wait;
    Bytes predicted_in, predicted_out;  // moved to the device and from it
    std::uint64_t optimizer_steps = 0;  // in the iteration that it is for
    Nanos link_bound, least_wait, planning;
    Bytes least_in, least_out;  // that the budget forces to move in each iteration
    std::uint64_t adopted_at_iteration = 0;
    std::uint64_t given_up_at_iteration = 0;  // 0: it was not
    PlanEnd end = PlanEnd::none;
    std::string file;  // that it was read from; empty: it was made in this run
  };
  struct Phase {  // all iterations of the same kind; the figures are medians
    std::string name;
    std::size_t iterations = 0;
    Nanos duration;
    Nanos worked;  // of this, while nobody waited for memory
    std::uint64_t faults = 0, kernels = 0;
  };
  struct Prediction {  // of an iteration with less memory
    double part = 0;   // of the peak
    Bytes device;
    std::optional<Nanos> iteration;  // nothing: it cannot run there, or by faults alone
    std::string policy;              // empty: nothing would move
  };
  struct Cost {         // of the tensors that play the same part in each iteration
    std::string name;   // in the recorded iteration; empty: it has no place there
    std::string maker;  // the kernel that makes it; empty: none does
    Bytes bytes;        // of one
    Bytes moved;        // of all, in the whole run, from any tier to any other
    Bytes waited_for;   // of these, to the device when somebody waited for them already
  };
  struct Advice {
    std::string_view kind;  // "fits", "waits"
    std::string sentence;
  };
  struct Unmanaged {
    std::int64_t pid = 0;
    std::string name;
  };

  int exit_status = 0;
  Nanos wall;                 // of the script
  bool made_tensors = false;  // false: there was nothing to manage, and all below is zero
  Nanos managed;              // from the first tensor on
  std::string policy;
  bool learns = false;  // the policy does, from the second iteration on
  EvictionMethod eviction_path = EvictionMethod::automatic;
  bool unlimited = false;
  Bytes device_budget, host_budget;
  PerTier<Bytes> peak;
  Bytes refused;  // the largest tensor that found no room
  Bytes unmanaged_peak;
  std::uint64_t faults = 0, first_touches = 0;
  PerLink<Bytes> moved;
  Bytes ssd_written;                                            // also by moves that were given up
  std::optional<BytesPerSecond> ssd_read_rate, ssd_write_rate;  // as measured in the run, if enough has moved
  Bytes clean_drops;                // left for the SSD without being written, since it had the same bytes
  std::uint64_t unseen_writes = 0;  // blocks that should have left so, and had changed though no operator said so
  Nanos stall;
  std::vector<Iteration> iterations;  // every one, up to kMaxIterations
  std::uint64_t iteration_count = 0;  // all of them
  std::vector<PlanTaken> plans;       // one after the other, up to kMaxPlans
  std::string not_planned;            // why there are none, though something moved and the policy plans
  bool has_optimizer = true;          // false: nothing can be planned for
  std::uint64_t plan_count = 0;       // all of them
  std::vector<Unmanaged> unmanaged;   // processes, up to kMaxUnmanaged
  std::uint64_t unmanaged_count = 0;
  std::vector<Prediction> predictions;  // of a run without limit
  Nanos unlimited_iteration;            // the recorded one, that they are for
  std::string not_predicted;            // why there are none
  Bytes least_device_budget;            // that any run can have here
  std::vector<Cost> costs;              // the highest
  std::string left_behind;              // names of processes that were ended after the script
  std::vector<std::string> notices;
  std::string error;                   // what kept the hook from doing its work
  std::string recorded, not_recorded;  // the trace's file, or why there is none
  std::string recorded_plan;           // the file of the plan followed last
  std::string journal;                 // its file; empty: none

  Bytes ssd_written_per_hour() const;  // at the rate of this run, while it was managed
};

// What the run did about memory in that iteration: "demand paging", "learning", "planned", or "in memory" in all.
std::string_view phase_of(const RunReport& report, std::size_t iteration);

// Those that there were, in the order in which they came first.
std::vector<RunReport::Phase> phases_of(const RunReport& report);

// Whether planned iterations have much that is in no plan and no prediction (an evaluation in each): ", without the 130
// of 273 operators that are no part of it,". Else empty.
std::string without_what(const RunReport& report);

// Whether anything had to leave the device.
bool has_moved(const RunReport& report);

// Whether Spillway was needed, and for how long the run waited and why. Nothing where an error says more.
std::optional<RunReport::Advice> advice_of(const RunReport& report);

// A few lines for people, the last one ended. Errors are not among them: they are for whoever prints this to print.
std::string to_table(const RunReport& report);

// One object with the names that docs and scripts rely on, ended by a line's end.
std::string to_json(const RunReport& report);

}  // namespace spillway
