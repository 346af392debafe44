// with_session RECORD ITERATION -- COMMAND: runs the command with the hook, as `spillway trace` does but with nothing
// else around it, and prints what the hook left in the session. For the tests of recording.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <string>

#include "session/session.h"

namespace {

using spillway::Session;

void set(std::array<char, spillway::kPathBytes>& field, const char* text) {
  std::strncpy(field.data(), text, field.size() - 1);
}

int report(const Session& session, int status) {
  const auto& state = session.state;
  fmt::print(stderr, "iterations {}\n", state.iterations.count());
  for (std::size_t i = 0; i < state.iterations.size(); ++i)
    fmt::print(stderr, "iteration {} {}\n", i, seconds(state.iterations[i].duration));
  fmt::print(stderr, "unmanaged_peak_bytes {}\n", state.unmanaged_peak_bytes.load());
  fmt::print(stderr, "unmanaged_processes {}\n", state.unmanaged_count.load());
  for (const auto& notice : state.notices)
    if (notice.is_set()) fmt::print(stderr, "notice {}\n", notice.get());
  if (state.error.is_set()) fmt::print(stderr, "error {}\n", state.error.get());
  if (state.recorded != 0) fmt::print(stderr, "recorded {}\n", session.config.record_path.data());
  if (state.not_recorded.is_set()) fmt::print(stderr, "not_recorded {}\n", state.not_recorded.get());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    fmt::print(stderr, "usage: with_session RECORD ITERATION -- COMMAND\n");
    return 2;
  }
  const int fd = ::memfd_create("session", 0);
  if (fd < 0 || ::ftruncate(fd, sizeof(Session)) != 0) return 1;
  void* memory = ::mmap(nullptr, sizeof(Session), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 1;
  auto* session = ::new (memory) Session;
  session->config.mode = spillway::SessionMode::trace;
  session->config.iteration = std::strtoull(arguments[2], nullptr, 10);
  set(session->config.record_path, arguments[1]);
  set(session->config.torch_library, SPILLWAY_TORCH_LIBRARY);
  const std::string path = fmt::format("/proc/{}/fd/{}", ::getpid(), fd);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(spillway::kSessionVariable, path.c_str(), 1);
    ::setenv("LD_PRELOAD", SPILLWAY_PRELOAD_LIBRARY, 1);
    ::execvp(arguments[4], arguments + 4);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return report(*session, status);
}
