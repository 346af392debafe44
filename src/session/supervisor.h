#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "session/shared_session.h"

namespace spillway {

struct Supervised {
  int exit_status = 0;      // as a shell tells it: the script's own, 128+n on signal n, 126, 127
  bool started = false;     // false: the command could not be run, and `problem` says why
  std::string problem;      // about starting or ending processes; empty if all went well
  std::string left_behind;  // names of the processes that outlived the script and were ended
  Nanos wall;               // from the script's start to its end
  Nanos ended;              // when that was, on CLOCK_MONOTONIC
};

// What goes into every process of the script's.
struct Preloaded {
  std::string libraries;                 // as LD_PRELOAD takes them; empty: nothing is preloaded
  std::vector<std::string> environment;  // "NAME=value"
};

// Called twice a second while the command runs. False: it must be ended, and the user knows why.
using Watch = std::function<bool()>;

// Starts the command with the session and the preloaded library in its environment, passes signals on, and returns when
// the command and everything it started have ended. Ours must be the only thread. See Note [Guardian] for who ends
// whom. From the command's start on, writing to a closed pipe fails instead of ending this process: the report is still
// to come, and the status is the script's.
Result<Supervised> supervise(const SharedSession& session, const std::vector<std::string>& command,
                             const Preloaded& preloaded, const Watch& watch = {});

// Whether somebody has signalled us since the command has ended: these signals wait, so that the report is written.
bool has_waiting_signal();

}  // namespace spillway
