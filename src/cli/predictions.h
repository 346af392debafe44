#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "report/run_report.h"
#include "session/session.h"

namespace spillway {

// Where the trace goes that predictions are made from, if the user asked for none: gone with this process.
class MemoryFile {
 public:
  static Result<MemoryFile> make();
  std::string path() const;

 private:
  explicit MemoryFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// How the recorded iteration of a run without limit would do with less memory, or why nobody can tell. `goes_on` is
// asked before each planning.
void add_predictions(RunReport& report, const SessionConfig& config, const std::function<bool()>& goes_on);

}  // namespace spillway
