#pragma once

#include <string>
#include <string_view>

namespace spillway {

struct TraceHeader {
  std::string format, version;  // as written; empty if missing
};

// The two keys that say whether the rest can be understood, whatever that is and as far as it is JSON.
TraceHeader scan_header(std::string_view json);

}  // namespace spillway
