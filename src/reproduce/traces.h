#pragma once

#include <map>
#include <string>

#include "reproduce/experiment.h"
#include "trace/format.h"

namespace spillway {

using Traces = std::map<std::string, LoadedTrace>;  // by model

// Whether all traces that it needs are there.
bool are_at_hand(const Experiment& experiment, const Traces& traces);

// Whether times of one of them are estimates.
bool has_estimates(const Experiment& experiment, const Traces& traces);

// The trace with kernels' times and tensors' sizes as the experiment has them.
Trace played_trace(Trace trace, const Experiment& experiment);

}  // namespace spillway
