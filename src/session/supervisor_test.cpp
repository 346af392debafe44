#include "session/supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "session/process_tree.h"

namespace spillway {
namespace {

// Every process of a script inherits the writing end, so that the end of the stream shows that all of them are gone.
// What they write there tells the test how far they are: no test sleeps.
class Lifeline {
 public:
  static constexpr int kFd = 9;  // by which a shell script writes: echo here >&9
  Lifeline() {
    std::array<int, 2> ends{};
    CHECK(::pipe(ends.data()) == 0);
    read_ = ::fcntl(ends[0], F_DUPFD_CLOEXEC, 20);
    CHECK(::dup2(ends[1], kFd) == kFd);
    ::close(ends[0]);
    if (ends[1] != kFd) ::close(ends[1]);
  }
  ~Lifeline() {
    let_go();
    ::close(read_);
  }
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;
  void let_go() {
    if (held_) ::close(kFd);
    held_ = false;
  }
  // One line, without its end. "(end)" at the end of the stream, "(silence)" if nothing comes for ten seconds.
  std::string line() {
    std::string text;
    for (;;) {
      pollfd what{.fd = read_, .events = POLLIN, .revents = 0};
      if (::poll(&what, 1, 10'000) == 0) return "(silence)";
      char c = 0;
      const ssize_t got = ::read(read_, &c, 1);
      if (got == 0) return "(end)";
      if (got < 0) continue;
      if (c == '\n') return text;
      text += c;
    }
  }

 private:
  int read_ = -1;
  bool held_ = true;
};

// Supervising leaves the forwarded signals blocked, which the next script would inherit.
struct MaskKept {
  MaskKept() { ::sigprocmask(SIG_SETMASK, nullptr, &mask); }
  ~MaskKept() { ::sigprocmask(SIG_SETMASK, &mask, nullptr); }
  MaskKept(const MaskKept&) = delete;
  MaskKept& operator=(const MaskKept&) = delete;
  sigset_t mask{};
};

Supervised run(const std::vector<std::string>& command) {
  const MaskKept kept;
  auto session = SharedSession::create();
  CHECK(session);
  auto result = supervise(*session, command, {});
  CHECK(result);
  return *result;
}
Supervised run_shell(const std::string& script) { return run({"/bin/sh", "-c", script}); }

// A supervisor in a process of its own, whose status is the script's.
pid_t start_supervisor(const std::string& script) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(run_shell(script).exit_status);
  return pid;
}
int status_of(pid_t pid) {
  int status = 0;
  CHECK(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Supervisor, PassesTheStatusThrough) {
  EXPECT_EQ(run({"true"}).exit_status, 0);
  EXPECT_EQ(run_shell("exit 7").exit_status, 7);
  EXPECT_EQ(run_shell("exit 127").exit_status, 127);
}

TEST(Supervisor, TellsADeathBySignalAsShellsDo) {
  EXPECT_EQ(run_shell("kill -KILL $$").exit_status, 128 + SIGKILL);
  EXPECT_EQ(run_shell("kill -SEGV $$").exit_status, 128 + SIGSEGV);
}

TEST(Supervisor, SaysWhyACommandCannotBeRun) {
  const Supervised missing = run({"no-such-program-anywhere"});
  EXPECT_FALSE(missing.started);
  EXPECT_EQ(missing.exit_status, 127);
  EXPECT_TRUE(missing.problem.contains("no such program")) << missing.problem;
  const Supervised folder = run({"/"});
  EXPECT_EQ(folder.exit_status, 126);
  EXPECT_TRUE(folder.problem.contains("cannot run /")) << folder.problem;
}

TEST(Supervisor, LeadsTheScriptToTheSessionThroughItsEnvironment) {
  EXPECT_EQ(run_shell("exec 3>&- 4>&- 5>&- 6>&-; cd /; test -e \"$SPILLWAY_SESSION\"").exit_status, 0);
}

TEST(Supervisor, GivesTheScriptTheSignalMaskItHadItself) {
  const MaskKept kept;
  sigset_t usr1{};
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  EXPECT_EQ(run_shell("kill -USR1 $$; exit 3").exit_status, 128 + SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &usr1, nullptr);
  EXPECT_EQ(run_shell("kill -USR1 $$; exit 3").exit_status, 3);
}

TEST(Supervisor, EndsWhatTheScriptLeavesBehindAndNamesIt) {
  Lifeline lifeline;
  // An orphan in a session of its own, there for sure when the script ends.
  const Supervised result = run_shell("{ setsid sh -c 'echo up; sleep 1000; exit' & } | read line; exit 5");
  lifeline.let_go();
  EXPECT_EQ(result.exit_status, 5);
  EXPECT_TRUE(result.left_behind.contains("sh")) << result.left_behind;
  EXPECT_EQ(lifeline.line(), "(end)");
}

TEST(Supervisor, WhatEndsByItselfWithTheScriptIsNotLeftBehind) {
  const Supervised result = run({"bash", "-c", "coproc { trap '' TERM; cat; sleep 0.01; }; exit 5"});
  EXPECT_EQ(result.exit_status, 5);
  EXPECT_EQ(result.left_behind, "");
}

TEST(Supervisor, KillsWhatDoesNotEndWhenAsked) {
  Lifeline lifeline;
  const Supervised result =
      run_shell("{ sh -c 'trap \"\" TERM; echo up; while :; do sleep 1000; done' & } | read line; exit 0");
  lifeline.let_go();
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.problem, "");
  EXPECT_EQ(lifeline.line(), "(end)");
}

TEST(Supervisor, KilledWithNineTakesEverythingWithIt) {
  Lifeline lifeline;
  const pid_t supervisor = start_supervisor(
      "setsid sh -c 'echo one >&9; sleep 1000' & "
      "(setsid sh -c '(sleep 1000 &) ; echo two >&9; sleep 1000' &) ; sleep 1000");
  lifeline.let_go();
  EXPECT_EQ(lifeline.line().size(), 3u);  // one and two, in some order
  EXPECT_EQ(lifeline.line().size(), 3u);
  ::kill(supervisor, SIGKILL);
  EXPECT_EQ(status_of(supervisor), 1000 + SIGKILL);
  EXPECT_EQ(lifeline.line(), "(end)");
}

TEST(Supervisor, OutlivesItsGuardianAndEndsTheScript) {
  Lifeline lifeline;
  const pid_t supervisor = start_supervisor("setsid sh -c 'echo up >&9; sleep 1000' & echo $PPID >&9; sleep 1000");
  lifeline.let_go();
  std::string guardian;
  for (int i = 0; i < 2; ++i)
    if (const std::string line = lifeline.line(); line != "up") guardian = line;
  ASSERT_FALSE(guardian.empty());
  ::kill(std::stoi(guardian), SIGKILL);
  EXPECT_EQ(status_of(supervisor), 128 + SIGKILL);
  EXPECT_EQ(lifeline.line(), "(end)");
}

TEST(Supervisor, PassesSignalsOn) {
  for (const auto& [signal, name] : {std::pair{SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGINT, "INT"}, {SIGUSR1, "USR1"}}) {
    Lifeline lifeline;
    const pid_t supervisor =
        start_supervisor("trap 'exit 42' " + std::string(name) + "; echo up >&9; while :; do sleep 1000 & wait; done");
    lifeline.let_go();
    EXPECT_EQ(lifeline.line(), "up");
    ::kill(supervisor, signal);
    EXPECT_EQ(status_of(supervisor), 42) << name;
    EXPECT_EQ(lifeline.line(), "(end)");
  }
}

TEST(Supervisor, LeavesTheTerminalsKeysToTheScript) {
  Lifeline lifeline;
  int terminal = -1;
  const pid_t supervisor = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  // Counts the interrupts until it is asked to end, which it is told later than of those passed on. It waits for a
  // process: a shell that is about to read may tell of a signal only once it has read something.
  if (supervisor == 0)
    ::_exit(run_shell("n=0; trap 'n=$((n+1)); echo got >&9' INT; trap 'kill $!; exit $n' TERM; "
                      "tail -f /dev/null & echo up >&9; while :; do wait; done")
                .exit_status);
  lifeline.let_go();
  EXPECT_EQ(lifeline.line(), "up");
  constexpr int kInterrupts = 100;  // A second one is seldom told from the first.
  for (int i = 0; i < kInterrupts; ++i) {
    ASSERT_EQ(::write(terminal, "\003", 1), 1);
    ASSERT_EQ(lifeline.line(), "got");
  }
  ASSERT_EQ(::kill(supervisor, SIGTERM), 0);
  EXPECT_EQ(status_of(supervisor), kInterrupts) << "each once, not passed on a second time";
  ::close(terminal);
}

TEST(ProcessTree, DoesNotSignalAnotherProcessWithTheSamePid) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  std::vector<Process> found = descendants(::getpid());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, child);
  Process other = found[0];
  ++other.start_ticks;
  send_signal(other, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it lives on";
  send_signal(found[0], SIGKILL);
  EXPECT_EQ(status_of(child), 1000 + SIGKILL);
  EXPECT_TRUE(descendants(::getpid()).empty());
}

}  // namespace
}  // namespace spillway
