#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"

namespace spillway {

inline constexpr std::string_view kTraceFormat = "spillway-trace";
inline constexpr std::uint64_t kTraceVersion = 3;  // the newest

// What parse_trace() does first: every key and value is of the right type; whether they make sense together is for
// validate() to say.
Result<Trace> read_trace_json(std::string_view json, const std::string& where);

}  // namespace spillway
