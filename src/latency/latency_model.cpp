#include "latency/latency_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "trace/validate.h"

namespace spillway {
namespace {

// What the time is measured in.
double unit_of(const Kernel& kernel) { return 1 + bytes_moved(kernel); }

}  // namespace

float output_of(const Kernel& kernel) {
  const auto time = static_cast<double>(std::max(kernel.duration, Nanos{1}).value);
  return static_cast<float>(std::log(time / unit_of(kernel)));
}

Nanos time_of(const Network& network, const Kernel& kernel) {
  const double time = std::exp(double{evaluate(network, features_of(kernel))}) * unit_of(kernel);
  constexpr double kMost = 3.6e12;  // an hour; a network says anything of what is far from its examples
  return {static_cast<std::uint64_t>(std::llround(time > 1 ? std::min(time, kMost) : 1))};
}

Nanos predict(const LatencyModel& model, const Kernel& kernel) {
  const auto of_class = [&](std::string_view name) {
    const auto found = std::ranges::lower_bound(model.classes, name, {}, &ClassLatency::name);
    return found != model.classes.end() && found->name == name ? &found->network : nullptr;
  };
  const Network* network = of_class(class_of(kernel.name));
  if (network == nullptr) network = of_class(kAnyClass);
  CHECK(network != nullptr);
  return time_of(*network, kernel);
}

Trace with_predicted_times(Trace trace, const LatencyModel& model) {
  if (trace.kernels.empty()) return trace;
  Nanos gaps;
  for (const Kernel& kernel : trace.kernels) gaps += kernel.gap;
  const Nanos most{excess(kMostIterationTime, gaps).value / trace.kernels.size()};
  for (Kernel& kernel : trace.kernels) kernel.duration = std::min(predict(model, kernel), most);
  return trace;
}

}  // namespace spillway
