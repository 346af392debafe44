#include "reproduce/traces.h"

#include <algorithm>

namespace spillway {

bool are_at_hand(const Experiment& experiment, const Traces& traces) {
  return std::ranges::all_of(models_of(experiment), [&](const std::string& model) { return traces.contains(model); });
}

bool has_estimates(const Experiment& experiment, const Traces& traces) {
  return std::ranges::any_of(models_of(experiment), [&](const std::string& model) {
    const auto found = traces.find(model);
    return found != traces.end() && !found->second.trace.estimated.empty();
  });
}

Trace played_trace(Trace trace, const Experiment& experiment) {
  if (trace.estimated.empty()) return trace;
  const auto scaled = [&](Bytes bytes) { return Bytes{bytes.value * experiment.bytes_percent / 100}; };
  for (Tensor& tensor : trace.tensors) tensor.bytes = scaled(tensor.bytes);
  for (Kernel& kernel : trace.kernels) {
    kernel.duration.value = kernel.duration.value * experiment.estimates_percent / 100;
    for (std::vector<Access>* accesses : {&kernel.reads, &kernel.writes})
      for (Access& access : *accesses)
        access = {access.tensor, scaled(access.begin), scaled(access.end), access.sparse};
  }
  return trace;
}

}  // namespace spillway
