#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace spillway {

struct Process {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // with the pid it names one process for ever: pids are used again
  std::string name;
};

// "python3, sh"
std::string names_of(const std::vector<Process>& processes);

// The living processes below `root` (itself and zombies left out), by the parents that /proc names. Orphans are found
// if `root` is their subreaper.
std::vector<Process> descendants(pid_t root);

// Sends the signal, unless the process has ended and its pid belongs to another one by now.
void send_signal(const Process& process, int signal);

// Kills everything below the calling process, which must be a subreaper with SIGCHLD at its default, and reaps it.
// Forks that happen meanwhile are caught by going round again. Gives up after `limit` and returns what is still there:
// a process that waits in the kernel, or that has other rights than we.
std::vector<Process> kill_descendants(Nanos limit);

}  // namespace spillway
