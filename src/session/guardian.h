#pragma once

#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace spillway {

// Note [Guardian]
// Between the supervisor and the script stands one more process of ours, since a process that is killed with -9 can do
// nothing, and somebody has to end the script then:
//
//   supervisor ── guardian ── script ── whatever it starts
//
// - The guardian is the script's subreaper: what the script starts and abandons (setsid, double forks) becomes the
//   guardian's child, so that it can find and end every process, whatever its session, group or environment.
// - The supervisor and the guardian hold the two ends of a socket. When the supervisor is gone, however it went, the
//   guardian sees its end closed, kills everything below it and ends.
// - When the guardian is killed, the script dies with it (its parent-death signal), its orphans become children of the
//   supervisor, which is a subreaper too, and the supervisor kills those.
// - When the script has ended, what it left running in the background is ended as well: first asked (SIGTERM), after
//   kGrace killed. A managed run leaves nothing behind; who wants a service to outlive it starts that outside.
//
// All three stay in the caller's process group and session, so that job control and the terminal's keys reach them as
// they would reach the script alone. Both ours ignore what the terminal sends; the script gets that itself.

// What the guardian tells the supervisor, as one message.
struct GuardianReport {
  int exec_error = 0;          // errno if the script could not be started
  int wait_status = 0;         // as waitpid() gives it
  std::uint64_t ended_ns = 0;  // when the script had ended, on CLOCK_MONOTONIC
  char left_behind[1024]{};    // names of the processes that had to be ended, separated by ", "
  char unkillable[256]{};      // names of those that could not be
};

struct ScriptStart {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value", added to ours
  sigset_t signal_mask{};                // what the script starts with
};

// The guardian's whole life, called in a freshly forked child of a single-threaded process.
[[noreturn]] void guard(const ScriptStart& start, UniqueFd to_supervisor) noexcept;

// The signals that supervisor and guardian pass on.
sigset_t forwarded_signals();

}  // namespace spillway
