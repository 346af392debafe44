#include "cli/pictures.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/replaced_file.h"
#include "pages/page.h"

namespace spillway {

Result<std::string> write_picture(const std::string& path, const std::string& content, const char* where) {
  TRY_VOID(write_file(path, content));
  return fmt::format("wrote {} ({}); open it in {}\n", path, to_text(Bytes{content.size()}), where);
}

Result<> Pictures::check() const {
  if (!html.empty()) TRY_VOID(check_replaced(html, OutputKind::page, "--html"));
  if (!perfetto.empty()) TRY_VOID(check_replaced(perfetto, OutputKind::trace_events, "--perfetto"));
  if (!html.empty() && !perfetto.empty() && are_same_file(html, perfetto))
    return fail(Errc::usage, fmt::format("--html {} and --perfetto {} are the same file; name two", html, perfetto));
  return {};
}

Result<std::string> Pictures::draw(const RunTimeline& timeline) const {
  std::string said;
  if (!html.empty()) {
    TRY(const std::string line, write_picture(html, page_of(timeline), "a browser"));
    said += line;
  }
  if (!perfetto.empty()) {
    TRY(const std::string line, write_picture(perfetto, trace_events_of(timeline), "https://ui.perfetto.dev"));
    said += line;
  }
  for (const std::string& note : timeline.notes) said += note + '\n';
  return said;
}

}  // namespace spillway
