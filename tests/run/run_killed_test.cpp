#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

struct RunKilled : Program {};

// Until a line comes, or until whoever holds the other end is gone ("").
std::string await(int fd) {
  pollfd what{.fd = fd, .events = POLLIN, .revents = 0};
  if (::poll(&what, 1, 20'000) != 1) return "(silence)";
  char text[64];
  const ssize_t got = ::read(fd, text, sizeof text);
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "";
}

TEST_F(RunKilled, WithNineLeavesNoProcessAndNoFile) {
  int lifeline[2];  // every process of the run holds the writing end
  ASSERT_EQ(::pipe2(lifeline, O_CLOEXEC), 0);
  const std::string script = "setsid sh -c 'echo up; sleep 1000; exit' & sleep 1000; exit";
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    ::dup2(lifeline[1], 1);
    keep_two_cpus();
    ::execl(program.c_str(), "spillway", "run", "--device-memory", "1GiB", "--ssd", folder.c_str(), "--json",
            (folder / "report.json").c_str(), "--", "sh", "-c", script.c_str(), nullptr);
    ::_exit(99);
  }
  ::close(lifeline[1]);
  EXPECT_EQ(await(lifeline[0]), "up\n");
  ::kill(supervisor, SIGKILL);
  EXPECT_EQ(await(lifeline[0]), "");
  ::waitpid(supervisor, nullptr, 0);
  ::close(lifeline[0]);
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace spillway
