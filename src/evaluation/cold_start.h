#pragma once

#include <optional>

#include "base/result.h"
#include "latency/latency_model.h"
#include "policies/policies.h"
#include "trace/trace.h"

namespace spillway {

// What the policy's parameter `cold-start` names, where it has one and that is set.
Result<std::optional<LatencyModel>> cold_start_of(const Policy& policy);

// The iteration as the policy's first plan reckons with it: with predicted times, or as it was recorded.
Trace reckoned_trace(const Trace& recorded, const LatencyModel* cold_start);

}  // namespace spillway
