#include "reproduce/predictors.h"

#include "latency/fit.h"

namespace spillway {

const LatencyModel& Predictors::learned_for(const Experiment& experiment) {
  Entry* entry = nullptr;
  {
    const MutexLock lock(mutex_);
    std::unique_ptr<Entry>& place =
        entries_[{experiment.learned_from, experiment.estimates_percent, experiment.bytes_percent}];
    if (!place) place = std::make_unique<Entry>();
    entry = place.get();
  }
  std::call_once(entry->fitted, [&] {
    std::vector<Trace> played;
    for (const std::string& model : experiment.learned_from)
      played.push_back(played_trace(traces_.at(model).trace, experiment));
    std::vector<const Trace*> traces;
    for (const Trace& trace : played) traces.push_back(&trace);
    entry->model = fit_model(traces);
  });
  return entry->model;
}

}  // namespace spillway
