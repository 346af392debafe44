// TrioSim's tables, one after the other with a line "----" between: any bytes are an error or a valid trace.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "import/triosim.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kBetween = "----\n";
  const std::size_t end = text.find(kBetween);
  if (end == std::string_view::npos) return 0;
  const auto trace = parse_triosim(text.substr(0, end), text.substr(end + kBetween.size()), "input", "input", "fuzz");
  CHECK(trace ? validate(*trace, "output").has_value() : !trace.error().message.empty());
  return 0;
}
