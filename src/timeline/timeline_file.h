#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "timeline/run_timeline.h"

namespace spillway {

// Timeline files, as docs/formats/timeline.md defines them: one JSON object a line.

// The whole text; what is not UTF-8 in names is replaced.
std::string to_json_lines(const RunTimeline& timeline);
// Errors name `where`, the line and the reason (Errc::bad_input).
Result<RunTimeline> parse_timeline(std::string_view text, const std::string& where);

// Compressed if the path ends in ".zst". The file appears whole or not at all.
Result<> save_timeline(const std::string& path, const RunTimeline& timeline);
// Compressed or not is seen from the content.
Result<RunTimeline> load_timeline(const std::string& path);
// Whether a path is named as timelines are: .timeline or .timeline.zst.
bool names_timeline(std::string_view path);

}  // namespace spillway
