#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/check.h"

namespace spillway {

struct ChildEnd {
  int status = 0;
  std::string text;  // what it wrote to stderr
  bool exits_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
};
// Forks; the child ends with the status that `body` returns.
template <class F>
ChildEnd in_child(F&& body) {
  int pipe[2];
  CHECK(::pipe2(pipe, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::_exit(body());
  }
  ::close(pipe[1]);
  ChildEnd end;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(pipe[0], buffer, sizeof buffer)) > 0;)
    end.text.append(buffer, static_cast<std::size_t>(got));
  ::close(pipe[0]);
  CHECK(::waitpid(child, &end.status, 0) == child);
  return end;
}

}  // namespace spillway
