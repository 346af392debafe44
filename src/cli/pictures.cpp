#include "cli/pictures.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "pages/page.h"
#include "timeline/timeline_file.h"
#include "trace/format.h"

namespace spillway {
namespace {

Result<RunTimeline> timeline_in(const std::string& file) {
  if (names_timeline(file)) return load_timeline(file);
  TRY(const LoadedTrace loaded, load_trace(file));
  return unlimited_timeline(loaded.trace, loaded.hash);
}

Result<std::string> write_picture(const std::string& path, const std::string& content, const char* where) {
  TRY_VOID(write_file(path, content));
  return fmt::format("wrote {} ({}); open it in {}\n", path, to_text(Bytes{content.size()}), where);
}

}  // namespace

Result<std::string> Pictures::draw(const std::string& file) const {
  if (!html.empty()) TRY_VOID(check_new_file(html, {file}, "--html"));
  if (!perfetto.empty()) TRY_VOID(check_new_file(perfetto, {file}, "--perfetto"));
  if (!html.empty() && html == perfetto)
    return fail(Errc::usage, fmt::format("--html and --perfetto both name {}; name two files", html));
  TRY(const RunTimeline timeline, timeline_in(file));
  std::string said;
  if (!html.empty()) {
    TRY(const std::string line, write_picture(html, page_of(timeline), "a browser"));
    said += line;
  }
  if (!perfetto.empty()) {
    TRY(const std::string line, write_picture(perfetto, trace_events_of(timeline), "https://ui.perfetto.dev"));
    said += line;
  }
  return said;
}

}  // namespace spillway
