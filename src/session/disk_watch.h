#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "session/session.h"

namespace spillway {

// How long a disk may take for what is more than one transfer: a trial, a trace, a report. Zero: as long as it wants.
Nanos limit_of_many_calls(Nanos io_timeout);

// Notices from outside that a disk does not answer any more: the script's threads that wait for it cannot say so.
class DiskWatch {
 public:
  explicit DiskWatch(const Session& session) : session_(session) {}

  // To be called now and then. Why the run cannot go on, once something has waited for a disk longer than the session's
  // limit; else empty. Time in which the script is stopped (by its terminal, by a debugger) does not count.
  std::string overdue(Nanos now);

 private:
  struct Waiting {
    std::uint64_t wait = 0;  // as the session has it
    Nanos waited;
  };
  const Session& session_;
  std::vector<Waiting> waiting_;  // as of the last look
  Nanos last_;
};

}  // namespace spillway
