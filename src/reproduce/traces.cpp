#include "reproduce/traces.h"

#include <algorithm>

namespace spillway {

bool are_at_hand(const Experiment& experiment, const Traces& traces) {
  return std::ranges::all_of(models_of(experiment), [&](const std::string& model) { return traces.contains(model); });
}

Trace played_trace(Trace trace, const Experiment& experiment) {
  if (trace.estimated.empty()) return trace;
  for (Kernel& kernel : trace.kernels)
    kernel.duration.value = kernel.duration.value * experiment.estimates_percent / 100;
  return trace;
}

}  // namespace spillway
