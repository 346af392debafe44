#pragma once

#include <string>

#include "base/result.h"

namespace spillway {

// `show --html` and `--perfetto`: what a timeline, or a trace that had all memory, looks like. Empty: not asked for.
struct Pictures {
  std::string html, perfetto;

  bool are_asked_for() const { return !html.empty() || !perfetto.empty(); }
  // Reads the file and writes them; returns what to print.
  Result<std::string> draw(const std::string& file) const;
};

}  // namespace spillway
