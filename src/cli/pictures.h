#pragma once

#include <string>

#include "base/result.h"
#include "timeline/run_timeline.h"

namespace spillway {

// `show --html` and `--perfetto`. Empty: not asked for.
struct Pictures {
  std::string html, perfetto;

  bool are_asked_for() const { return !html.empty() || !perfetto.empty(); }
  // Refuses names under which another file, or one of the pictures, would be lost.
  Result<> check() const;
  // Writes them; returns what to print.
  Result<std::string> draw(const RunTimeline& timeline) const;
};

// Returns what to print of it.
Result<std::string> write_picture(const std::string& path, const std::string& content, const char* where);

}  // namespace spillway
