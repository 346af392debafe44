// Trace files: any bytes are an error or a valid trace, and a valid trace survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "trace/compressed.h"
#include "trace/format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (is_zstd(text)) {
    const auto unpacked = decompress_zstd(text, 1_MiB, "input");
    if (unpacked) (void)parse_trace(*unpacked, "input");
    return 0;
  }
  const auto loaded = parse_trace(text, "input");
  if (!loaded) {
    CHECK(!loaded.error().message.empty());
    return 0;
  }
  const auto json = to_json(loaded->trace);
  CHECK(json.has_value());
  const auto again = parse_trace(*json, "output");
  CHECK(again.has_value() && again->trace == loaded->trace);
  return 0;
}
