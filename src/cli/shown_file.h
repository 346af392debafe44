#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace spillway {

// A file that `spillway show` shows.
struct ShownFile {
  enum class Kind : std::uint8_t { trace, plan, timeline, journal, run_report };
  Kind kind = Kind::trace;
  std::string path;
  std::string content = {};  // decompressed; of journals empty, since they are read piece by piece
};

// What it is, its content says: its first line if it is a journal, else the key `format`. Its name counts only where
// the content says nothing, so that the error is of what it should be.
Result<ShownFile> open_shown(const std::string& path);

}  // namespace spillway
