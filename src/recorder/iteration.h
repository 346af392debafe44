#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "recorder/match.h"
#include "trace/trace.h"

namespace spillway {

// One iteration, with the one before it: what that one left behind, the iteration finds at its start.
struct Iteration {
  std::vector<Segment> before, segments;
  Roles roles;  // of `before` in `segments`
  // False if the two were not compared (--iteration N): then what the iteration itself frees after its last kernel
  // counts.
  bool steady = true;
};

// How long one kernel takes, and the gap before it.
struct KernelTime {
  Nanos duration, gap;
};

// The times of one kernel in the iterations seen. Keeps a bounded number: over a long run every second, fourth, ...
class KernelTimes {
 public:
  void add(const KernelTime& time);
  KernelTime median() const;
  // An exponentially weighted moving average (TENSILE section IV-E): what is new counts more. What takes very long once
  // (the script was stopped, another program ran) counts as at most kMostGrowth times the average and kAllowance.
  const KernelTime& average() const { return average_; }
  void restart_average() { averaged_ = 0; }

 private:
  static constexpr std::size_t kMost = 64;
  static constexpr double kNewest = 0.3;  // the newest one's weight
  static constexpr std::uint64_t kMostGrowth = 4;
  static constexpr Nanos kAllowance{1'000'000};  // many averages are of nanoseconds

  Nanos follow(Nanos average, Nanos newest, Nanos last, Nanos before_last) const;

  std::vector<Nanos> durations_, gaps_;
  std::uint64_t stride_ = 1, seen_ = 0;
  KernelTime average_, last_, before_last_;
  std::uint64_t averaged_ = 0;  // so many times
};

std::vector<const Segment*> pointers(const std::vector<Segment>& segments);

// An iteration as a trace, with what it takes to recognise it when it comes again.
struct RecordedIteration {
  std::uint64_t number = 0;  // another one if the script has changed what it does
  Trace trace;
  std::vector<std::uint64_t> signatures;  // by kernel: of its name and its arguments' shapes
  std::vector<std::uint32_t> anchors;     // how many kernels come before the end of each of its segments
  std::vector<StorageId> storages;        // by tensor: what played its part; the one that is alive at the end
  std::vector<TensorLabel> labels;        // of these
  // By kernel: what it makes, in order.
  std::vector<std::vector<TensorId>> births;
};
std::uint64_t signature_of(std::string_view name, std::uint64_t shapes);

// `times` has one entry for each kernel.
RecordedIteration build_iteration(const Iteration& iteration, const std::vector<KernelTime>& times);

}  // namespace spillway
