#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace spillway {

// The iteration, in such a folder.
inline constexpr const char* kRecordedTraceName = "model.trace";

// Where --record writes: a folder that is gone again if it was made here and nothing came into it. It is locked
// meanwhile, so that no other run takes away what this one writes.
class RecordFolder {
 public:
  explicit RecordFolder(std::filesystem::path path) : path_(std::move(path)) {}
  RecordFolder(const RecordFolder&) = delete;
  ~RecordFolder();

  // Whether a file of that name would be this folder, or stand where something is recorded.
  bool takes(const std::filesystem::path& file) const;

  // Makes it if need be; a file is made there on trial, within `limit` (zero: none).
  Result<> open(Nanos limit);
  // The names of what will be recorded. What is there is of another run, and nobody shall take it for this one's: it
  // goes.
  Result<std::string> trace_file() const;
  Result<std::string> journal_file() const;
  Result<std::string> blocks() const;  // the plan and its trace, without their ends
  // Its disk does not answer: nothing is asked of it any more.
  void leave() { made_ = false; }

 private:
  Result<std::string> new_file(const std::filesystem::path& path) const;
  Result<> lock();

  std::filesystem::path path_;
  bool made_ = false;
  std::optional<UniqueFd> locked_;
};

}  // namespace spillway
