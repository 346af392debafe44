#pragma once

#include <string>

#include "base/units.h"
#include "hook/session/session.h"

namespace spillway {

// Notices from outside that the SSD does not answer any more: the script's threads that wait for it cannot say so.
class TransferWatch {
 public:
  explicit TransferWatch(const Session& session) : session_(session) {}

  // To be called now and then. Why the run cannot go on, once a transfer has taken longer than the session's limit;
  // else empty. Time in which the script is stopped (by its terminal, by a debugger) does not count.
  std::string overdue(Nanos now);

 private:
  const Session& session_;
  std::uint64_t oldest_ = 0;
  Nanos last_, waited_;
};

}  // namespace spillway
