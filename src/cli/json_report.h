#pragma once

#include <string>

#include "base/result.h"
#include "base/units.h"

namespace spillway {

// The file of --json. One on a disk is written in a process of its own, since the disk may answer no more.
class JsonReport {
 public:
  // Makes sure, before a long run and within `limit` (zero: none), that it can be written.
  static Result<JsonReport> open(const std::string& file, Nanos limit);
  const std::string& path() const { return path_; }
  Result<> write(const std::string& text, Nanos limit) const;

 private:
  std::string path_;
  // What is not a plain file takes as long as who reads it, and may be this process's own.
  bool is_stream_ = false;
};

}  // namespace spillway
