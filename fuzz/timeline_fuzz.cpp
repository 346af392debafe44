// Timeline files: any bytes are an error or a timeline, which survives being written and read again and can be drawn.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "pages/page.h"
#include "timeline/timeline_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  const auto timeline = parse_timeline({reinterpret_cast<const char*>(data), size}, "input");
  if (!timeline) {
    CHECK(timeline.error().code == Errc::bad_input && timeline.error().message.starts_with("input: line "));
    return 0;
  }
  const auto again = parse_timeline(to_json_lines(*timeline), "output");
  CHECK(again.has_value() && *again == *timeline);
  CHECK(!trace_events_of(*timeline).empty() && !page_of(*timeline).empty());
  return 0;
}
