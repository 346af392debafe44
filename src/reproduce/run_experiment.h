#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "reproduce/experiment.h"
#include "reproduce/predictors.h"
#include "reproduce/traces.h"

namespace spillway {

// Simulates it. Its traces must be at hand.
Result<Outcome> run_experiment(const Experiment& experiment, const Traces& traces, Predictors& predictors);

// All that its outcome depends on, beside `program`, which simulates.
Result<std::string> key_of(const Experiment& experiment, const Traces& traces, const std::string& program);

// When its jobs arrive, beginning with the model's own, at 0.
std::vector<Nanos> arrivals_of(const Experiment& experiment, const Traces& traces);

}  // namespace spillway
