#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/execution_trace.h"
#include "import/kineto.h"

namespace spillway {

// When a node of an execution trace ran: on the host, and on the GPU what it launched there.
struct OperatorTime {
  std::int64_t thread = 0;
  KinetoSpan host = {};
  std::optional<KinetoSpan> gpu = {};  // from the start of its first kernel to the end of its last
  std::int64_t busy = 0;               // nanoseconds of all its kernels
};

// For each node that `wanted` names (by its place, ascending), in that order; nothing for those that the profiler did
// not see. Joined by rf_id and "Record function id"; older profilers, which write no such id, count from another
// number.
Result<std::vector<std::optional<OperatorTime>>> times_of(const std::vector<EtNode>& nodes,
                                                          const std::vector<std::size_t>& wanted, const Kineto& kineto,
                                                          const std::string& where);

}  // namespace spillway
