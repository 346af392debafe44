#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "machines/cpu/eviction_method.h"
#include "runtime/run_figures.h"

namespace spillway {

// What a run did about memory in an iteration.
enum class RunPhase : std::uint8_t { in_memory, demand_paging, learning, planned };
std::string_view to_text(RunPhase phase);

// What a run came to.
struct RunReport {
  struct Phase {  // all iterations of the same kind; the figures are medians
    RunPhase kind;
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
  struct Advice {
    enum class Kind : std::uint8_t { fits, waits } kind;
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
  struct Gpu {
    std::string device, name;  // "cuda:0", "NVIDIA H200"
    int cuda_version = 0;      // the newest that the driver knows: 12080 is 12.8
    Bytes block_bytes;
    Bytes pinned_budget;
    bool strict = false;  // each launch was checked
    GpuFigures figures;
  };
  std::optional<Gpu> gpu;  // nothing: the CPU's tensors are limited
  std::string policy;
  bool learns = false;  // the policy does, from the second iteration on
  EvictionMethod eviction_path = EvictionMethod::automatic;
  bool unlimited = false;
  Bytes device_budget, host_budget;
  MemoryFigures memory;
  Bytes refused;  // the largest tensor that found no room
  Bytes unmanaged_peak;
  std::optional<BytesPerSecond> ssd_read_rate, ssd_write_rate;  // as measured in the run, if enough has moved
  std::vector<IterationFigures> iterations;                     // every one, as far as there was room
  std::uint64_t iteration_count = 0;                            // all of them
  std::vector<PlanFigures> plans;                               // one after the other, as far as there was room
  std::uint64_t plan_count = 0;                                 // all of them
  std::string given_plan;                                       // the file of those that the user has given
  std::optional<WhyNoPlan> no_plan;                             // something moved and the policy plans, in vain
  bool has_optimizer = true;                                    // false: nothing can be planned for
  std::vector<Unmanaged> unmanaged;                             // processes, as far as there was room
  std::uint64_t unmanaged_count = 0;
  std::vector<Prediction> predictions;  // of a run without limit
  Nanos unlimited_iteration;            // the recorded one, that they are for
  std::uint64_t recorded_steps = 0;     // of an optimizer, in that one
  std::string not_predicted;            // why there are none
  Bytes least_device_budget;            // that any run can have here
  std::vector<CostFigures> costs;       // the highest
  std::string left_behind;              // names of processes that were ended after the script
  std::vector<std::string> notices;
  std::string error;                   // what kept the hook from doing its work
  std::string recorded, not_recorded;  // the trace's file, or why there is none
  std::string recorded_plan;           // the file of the plan followed last
  std::string journal;                 // its file; empty: none

  Bytes ssd_written_per_hour() const;  // at the rate of this run, while it was managed
};

// "12.8"
std::string cuda_version_text(const RunReport::Gpu& gpu);

// Of each iteration.
std::vector<RunPhase> phase_of_each(const RunReport& report);

// Those that there were, in the order in which they came first.
std::vector<RunReport::Phase> phases_of(const RunReport& report);

// Whether planned iterations have much that is in no plan and no prediction (an evaluation in each): ", without the 130
// of 273 operators that are no part of it,". Else empty.
std::string without_what(const RunReport& report);

// A sentence; empty if there was a plan, or none was wanted.
std::string why_no_plan(const RunReport& report);

// Whether Spillway was needed, and for how long the run waited and why. Nothing where an error says more.
std::optional<RunReport::Advice> advice_of(const RunReport& report);

// A few lines for people, the last one ended. Errors are not among them: they are for whoever prints this to print.
std::string to_table(const RunReport& report);

// One object with the names that docs and scripts rely on, ended by a line's end.
std::string to_json(const RunReport& report);

}  // namespace spillway
