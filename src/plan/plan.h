#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "memory/tier.h"
#include "plan/reckoned.h"
#include "trace/shape.h"

namespace spillway {

// A plan's commands hang on the boundaries of kernels, so that an instrumented program could carry them: on a boundary,
// or some time behind it (TENSILE's trigger and delay, section III-D).

// When kernel `after` has ended, the whole tensor leaves the device for `to`.
struct Eviction {
  TensorId tensor;
  KernelId after;
  Tier to = Tier::ssd;
  Nanos delay{};        // after the boundary
  bool during = false;  // Begins when the kernel starts, which only reads it; is gone when both end.
  std::optional<KernelId> awaited_by = {};  // This kernel does not start before the move has ended.
  friend bool operator==(const Eviction&, const Eviction&) = default;
};

// When kernel `at` starts, the tensor begins to come back from where its bytes are. In a period that wraps around the
// iteration's end, `at` lies behind the eviction's kernel in the same iteration or before the next use in the next one.
struct Prefetch {
  TensorId tensor;
  KernelId at;
  bool keeps_copy = false;  // below, so that the tensor can leave again without being copied
  Nanos delay{};
  std::optional<KernelId> awaited_by = {};
  friend bool operator==(const Prefetch&, const Prefetch&) = default;
};

// The tensor is discarded when kernel `drop_after` has ended. These kernels run once more, in their order, just before
// kernel `before`; the last one writes the tensor again (TENSILE section III-C). See recomputation.h.
struct Recomputation {
  TensorId tensor;
  KernelId drop_after, before;
  std::vector<KernelId> kernels = {};
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

// What moves when in every iteration. All lists are ordered by kernel; within a boundary the order is that of issue.
struct Plan {
  std::string policy;
  std::string trace_name, trace_hash;      // what it was made for: the hash must match, names are for people
  TraceShape trace_shape;                  // by which a run knows its own iteration again, whose times are others
  std::string machine_name, machine_hash;  // a plan may be tried on another machine
  std::vector<std::string> machine_overrides;
  std::vector<Eviction> evictions;
  std::vector<Prefetch> prefetches;
  std::vector<Recomputation> recomputations = {};  // by drop_after
  Bytes overcommitted;                             // if kernels never waited: see docs/formats/plan.md
  PerTier<Bytes> shortfall{};                      // what is missing where no such plan can exist; in no file
  std::optional<double> predicted_seconds;         // a steady iteration in simulation
  std::optional<Reckoned> reckoned = {};           // in no file

  friend bool operator==(const Plan&, const Plan&) = default;
  std::uint64_t moves() const { return evictions.size() + prefetches.size(); }
};

}  // namespace spillway
