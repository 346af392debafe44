#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "latency/latency_model.h"
#include "reproduce/traces.h"

namespace spillway {

// Networks that have learned from traces how long kernels take (TENSILE section IV-A), each fitted once. Threads may
// ask at a time.
class Predictors {
 public:
  explicit Predictors(const Traces& traces) : traces_(traces) {}

  // Of the experiment's learned_from, whose traces must be at hand, with times as it has them.
  const LatencyModel& learned_for(const Experiment& experiment);

 private:
  struct Entry {
    std::once_flag fitted;
    LatencyModel model;
  };

  const Traces& traces_;
  Mutex mutex_;
  using Key = std::tuple<std::vector<std::string>, std::uint32_t, std::uint32_t>;  // models, percent of times, of bytes
  std::map<Key, std::unique_ptr<Entry>> entries_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
