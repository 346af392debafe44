// The G10 artifact's kernels.config: any bytes are an error or a trace that our own format can hold.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "trace/format.h"
#include "trace/g10.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  const auto trace = parse_g10({reinterpret_cast<const char*>(data), size}, "input", "fuzz");
  if (!trace) {
    CHECK(!trace.error().message.empty());
    return 0;
  }
  // Names may be any bytes there, and only UTF-8 here.
  if (const auto json = to_json(*trace)) CHECK(parse_trace(*json, "output").has_value());
  return 0;
}
