#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hook/recorder/match.h"
#include "trace/trace.h"

namespace spillway {

// One iteration, with the one before it: what that one left behind, the iteration finds at its start.
struct Iteration {
  std::vector<Segment> before, segments;
  std::size_t skipped = 0;  // kernels at the start of `before` that are no part of it
  Roles roles;              // of `before` in `segments`
  // False if the two were not compared (--iteration N): then what the iteration itself frees after its last kernel
  // counts.
  bool steady = true;
};

// Durations and gaps of one kernel in the iterations seen. Keeps a bounded number: over a long run every second,
// fourth, ...
class KernelTimes {
 public:
  void add(Nanos duration, Nanos gap);
  Nanos median_duration() const { return median(durations_); }
  Nanos median_gap() const { return median(gaps_); }

 private:
  static constexpr std::size_t kMost = 64;
  static Nanos median(std::vector<Nanos> values);

  std::vector<Nanos> durations_, gaps_;
  std::uint64_t stride_ = 1, seen_ = 0;
};

std::vector<const Segment*> pointers(const std::vector<Segment>& segments);

// An iteration as a trace, with what it takes to recognise it when it comes again.
struct RecordedIteration {
  Trace trace;
  std::vector<std::uint64_t> signatures;  // by kernel: of its name and its arguments' shapes
  std::vector<std::uint32_t> anchors;     // how many kernels come before the end of each of its segments
  std::vector<StorageId> storages;        // by tensor: what played its part; the one that is alive at the end
  // By kernel: what it makes, in order.
  std::vector<std::vector<TensorId>> births;
};
std::uint64_t signature_of(std::string_view name, std::uint64_t shapes);

// `times` has one entry for each kernel.
RecordedIteration build_iteration(const Iteration& iteration, const std::vector<KernelTimes>& times);

}  // namespace spillway
