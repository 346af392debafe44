// PyTorch's memory snapshots, alone or after an execution trace and a profile with lines "----" between: any bytes are
// an error or a valid trace.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "import/chakra.h"
#include "import/memory_snapshot.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kBetween = "\n----\n";
  const auto next = [&] {
    const std::size_t end = text.find(kBetween);
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + kBetween.size());
    return part;
  };
  const std::string_view record = next(), profile = next();
  if (profile.empty()) {
    const auto memory = parse_memory_snapshot(record, "input");
    CHECK(memory ? !memory->empty() : !memory.error().message.empty());
    return 0;
  }
  auto memory = parse_memory_snapshot(text, "input");
  const auto nodes = parse_execution_trace(record, "input");
  auto kineto = parse_kineto(profile, "input");
  if (!memory || !nodes || !kineto) return 0;
  const Kineto joined = with_snapshot(*std::move(kineto), *std::move(memory), "input");
  const auto trace = join_chakra(*nodes, joined, "input", "fuzz");
  CHECK(trace ? validate(*trace, "output").has_value() : !trace.error().message.empty());
  return 0;
}
