#include "evaluation/cold_start.h"

#include "latency/model_file.h"

namespace spillway {

Result<std::optional<LatencyModel>> cold_start_of(const Policy& policy) {
  const Parameters& parameters = policy.traits.parameters;
  if (!parameters.has("cold-start")) return std::nullopt;
  const auto path = parameters.file("cold-start");
  if (!path) return std::nullopt;
  TRY(LatencyModel model, load_latencies(*path));
  return model;
}

Trace reckoned_trace(const Trace& recorded, const LatencyModel* cold_start) {
  return cold_start != nullptr ? with_predicted_times(recorded, *cold_start) : recorded;
}

}  // namespace spillway
