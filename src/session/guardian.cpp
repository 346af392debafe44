#include "session/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>

#include "session/hook_side.h"
#include "session/process_tree.h"

namespace spillway {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kByThemselves = std::chrono::milliseconds(500);  // Python's resource_tracker does, say
constexpr auto kGrace = std::chrono::seconds(2);                // between asking and killing
constexpr Nanos kKillLimit{10'000'000'000};

void copy_names(const std::vector<Process>& processes, std::span<char> out) {
  const std::string text = names_of(processes);
  const std::size_t size = std::min(text.size(), out.size() - 1);
  std::memcpy(out.data(), text.data(), size);
}

// Becomes the script, or says why not through `failure` and ends.
[[noreturn]] void become_script(const ScriptStart& start, pid_t guardian, int failure) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guardian) ::_exit(127);  // it died before we asked to be told
  for (const std::string& entry : start.environment) {
    const std::size_t equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : start.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::sigprocmask(SIG_SETMASK, &start.signal_mask, nullptr);
  ::execvp(arguments.front(), arguments.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t put = ::write(failure, &error, sizeof error);
  ::_exit(127);
}

class Guardian {
 public:
  Guardian(const ScriptStart& start, UniqueFd to_supervisor)
      : start_(start), supervisor_(std::move(to_supervisor)), supervisor_pid_(::getppid()) {}

  [[noreturn]] void live() {
    ::prctl(PR_SET_NAME, "spillway-guard");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t awaited = forwarded_signals();
    sigaddset(&awaited, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &awaited, nullptr);  // or they would not come through the descriptor
    signals_ = ::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK);
    CHECK(signals_ >= 0);
    start_script();
    while (script_ != 0) wait_for_something(-1);
    end_the_rest();
    report_and_end();
  }

 private:
  void start_script() {
    int failure[2];
    CHECK(::pipe2(failure, O_CLOEXEC) == 0);
    const pid_t guardian = ::getpid();
    script_ = ::fork();
    if (script_ == 0) become_script(start_, guardian, failure[1]);
    if (script_ < 0) {
      report_.exec_error = errno;
      report_and_end();
    }
    ::close(failure[1]);
    // The end of the pipe is closed by a successful exec, or by death.
    ssize_t got = 0;
    do got = ::read(failure[0], &report_.exec_error, sizeof report_.exec_error);
    while (got < 0 && errno == EINTR);
    ::close(failure[0]);
    if (got > 0) {
      ::waitpid(script_, nullptr, 0);
      report_and_end();
    }
  }

  // Serves one round of signals, ended children and the supervisor's death; `limit_ms` as for poll().
  void wait_for_something(int limit_ms) {
    pollfd what[2] = {{.fd = signals_, .events = POLLIN, .revents = 0},
                      {.fd = supervisor_.get(), .events = POLLIN, .revents = 0}};
    ::poll(what, 2, limit_ms);
    if (what[1].revents != 0) {  // it never writes: this is its end
      kill_descendants(kKillLimit);
      ::_exit(0);
    }
    signalfd_siginfo signal{};
    while (::read(signals_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
      // Whoever signals the whole group reaches the supervisor and the script as well; we act for the supervisor only.
      const bool asked = static_cast<pid_t>(signal.ssi_pid) == supervisor_pid_ && signal.ssi_code == SI_USER;
      if (signal.ssi_signo != SIGCHLD && asked && script_ != 0) ::kill(script_, static_cast<int>(signal.ssi_signo));
    }
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != script_) continue;
      report_.wait_status = status;
      report_.ended_ns = monotonic_ns();
      script_ = 0;
    }
  }

  void wait_for_the_rest(Clock::duration limit) {
    const auto deadline = Clock::now() + limit;
    while (Clock::now() < deadline && !descendants(::getpid()).empty()) wait_for_something(20);
  }

  void end_the_rest() {
    wait_for_the_rest(kByThemselves);
    const std::vector<Process> left = descendants(::getpid());
    if (left.empty()) return;
    copy_names(left, report_.left_behind);
    for (const Process& process : left) {
      send_signal(process, SIGTERM);
      send_signal(process, SIGCONT);  // a stopped one could not answer
    }
    wait_for_the_rest(kGrace);
    copy_names(kill_descendants(kKillLimit), report_.unkillable);
  }

  [[noreturn]] void report_and_end() {
    if (report_.ended_ns == 0) report_.ended_ns = monotonic_ns();
    ::send(supervisor_.get(), &report_, sizeof report_, MSG_NOSIGNAL);
    ::_exit(0);
  }

  const ScriptStart& start_;
  UniqueFd supervisor_;
  pid_t supervisor_pid_;
  pid_t script_ = 0;  // 0: it has ended
  int signals_ = -1;
  GuardianReport report_;
};

}  // namespace

sigset_t forwarded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  return set;
}

void guard(const ScriptStart& start, UniqueFd to_supervisor) noexcept {
  Guardian(start, std::move(to_supervisor)).live();
}

}  // namespace spillway
