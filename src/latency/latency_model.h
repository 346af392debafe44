#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latency/network.h"
#include "trace/trace.h"

namespace spillway {

// The name of the network for kernels of classes that have none.
inline constexpr std::string_view kAnyClass = "*";

struct ClassLatency {
  std::string name;
  std::uint64_t kernels = 0;  // that it was fitted to
  Network network;            // of the logarithm of the time in nanoseconds for each byte moved
  friend bool operator==(const ClassLatency&, const ClassLatency&) = default;
};

// How long kernels take that nobody has measured (TENSILE section IV-A).
struct LatencyModel {
  std::vector<ClassLatency> classes;  // by name, each once; kAnyClass is among them
  friend bool operator==(const LatencyModel&, const LatencyModel&) = default;
};

// What the networks say of a kernel, and back.
float output_of(const Kernel& kernel);
Nanos time_of(const Network& network, const Kernel& kernel);

Nanos predict(const LatencyModel& model, const Kernel& kernel);

// The same iteration with predicted times. Gaps stay. Valid if the trace is.
Trace with_predicted_times(Trace trace, const LatencyModel& model);

}  // namespace spillway
