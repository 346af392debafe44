#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"

namespace spillway {

// What these files begin with.
inline constexpr std::string_view kExecutionTraceBegin =
    R"({"schema":"1.1.1-chakra.0.0.4","pid":1,"start_ts":0,"nodes":[)";
inline constexpr std::string_view kProfileBegin =
    R"({"schemaVersion":1,"displayTimeUnit":"ms","baseTimeNanoseconds":0,)";

// A trace as PyTorch would have recorded it on one GPU: which tensors operators use, and when.
struct ChakraFiles {
  std::string execution_trace;  // what ExecutionTraceObserver writes: a Chakra host trace, schema 1.1.1
  std::string profile;          // what prof.export_chrome_trace() writes
};

// join_chakra() makes the same trace of both again, but for what such files have no words for: docs/formats/import.md.
// Fails if a name is not UTF-8, or a tensor has more than 2^50 bytes.
Result<ChakraFiles> to_chakra(const Trace& trace);

}  // namespace spillway
