// DTR's logs: any bytes are an error or a valid trace.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "import/dtr.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  const auto trace = parse_dtr({reinterpret_cast<const char*>(data), size}, "input", "fuzz");
  CHECK(trace ? validate(*trace, "output").has_value() : !trace.error().message.empty());
  return 0;
}
