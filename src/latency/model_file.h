#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "latency/latency_model.h"

namespace spillway {

// Files of predicted latencies, as docs/formats/latencies.md defines them. What comes out of here has networks of
// kWidths with finite numbers, and one for kAnyClass. `where` names the text in errors: a path, usually.
Result<LatencyModel> parse_latencies(std::string_view json, const std::string& where);
Result<LatencyModel> load_latencies(const std::string& path);

// A class a line. Survives being read: the numbers are the same.
std::string to_json(const LatencyModel& model);
Result<> save_latencies(const std::string& path, const LatencyModel& model);

}  // namespace spillway
