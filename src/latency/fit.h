#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "latency/latency_model.h"
#include "trace/trace.h"

namespace spillway {

// By how much predictions miss, as a part of the true time.
struct RelativeErrors {
  double median = 0, most_of_nine_in_ten = 0;
};
RelativeErrors errors_of(std::vector<double> parts);  // at least one

// How good a class's network is on kernels that it has not seen.
struct ClassFit {
  std::string name;
  std::uint64_t kernels = 0, inputs = 0;   // and how many different ones they are to the network
  std::uint64_t held_out = 0;              // kernels; 0: too few are different
  RelativeErrors network = {}, mean = {};  // of those; the mean time of the class's others is what it has to beat
};

struct Fit {
  LatencyModel model;             // fitted to all kernels
  std::vector<ClassFit> classes;  // as in the model
  ClassFit all;                   // of all classes' held-out kernels, each by its own class's network
};

// One network a class, and one for all kernels. A fifth of the different inputs of each class is held out, with all
// kernels that have them; the file's networks are fitted again with those. At least one kernel.
Fit fit_latencies(std::span<const Trace* const> traces, const std::function<void(std::size_t done)>& progress);
// The networks alone: in half the time, and nobody knows how good they are.
LatencyModel fit_model(std::span<const Trace* const> traces);
std::size_t classes_of(std::span<const Trace* const> traces);  // how many it will do

}  // namespace spillway
