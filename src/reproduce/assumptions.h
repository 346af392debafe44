#pragma once

#include <string>
#include <vector>

#include "reproduce/experiment.h"
#include "reproduce/traces.h"

namespace spillway {

// What no paper says and the simulator must assume, with another value that might be as true.
struct Assumption {
  std::string text;  // "a page fault costs twice as much"
  // The experiment with that value. The same if it plays no part there.
  Experiment (*changed)(Experiment experiment, const Traces& traces);
};
const std::vector<Assumption>& assumptions();

}  // namespace spillway
