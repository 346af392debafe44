#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway {

enum class OutputKind : std::uint8_t {
  page,
  trace_events,
  timeline,
  trace,
  plan,
  latencies,
  execution_trace,
  profile,
  run_report,
  journal
};

// An output may take the place of an empty file, and of an older one of its kind. Anything else that is there somebody
// has made for something else: it would be lost. `option` is who asked for it.
Result<> check_replaced(const std::string& output, OutputKind kind, std::string_view option);

}  // namespace spillway
