#pragma once

#include <vector>

#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// The kernels' durations that a plan was made from. Later iterations may prove it wrong (TENSILE section IV-E).
struct Reckoned {
  std::vector<Nanos> durations;
  bool predicted = false;  // Nobody has measured an iteration.
  friend bool operator==(const Reckoned&, const Reckoned&) = default;
};

inline Reckoned reckoned_from(const Trace& trace, bool predicted = false) {
  Reckoned reckoned{.durations = {}, .predicted = predicted};
  for (const Kernel& kernel : trace.kernels) reckoned.durations.push_back(kernel.duration);
  return reckoned;
}

}  // namespace spillway
