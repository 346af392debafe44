#include "session/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/files.h"
#include "session/guardian.h"
#include "session/hook_side.h"
#include "session/process_tree.h"

namespace spillway {
namespace {

constexpr int kWatchEvery = 500;  // milliseconds

// Signals that are ours to read from a descriptor for as long as this lives. What comes too late is dropped.
class SignalQueue {
 public:
  SignalQueue() {
    const sigset_t set = forwarded_signals();
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    // Whoever started us may have had it ignored, and then children could not be waited for.
    struct sigaction plain{};
    plain.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &plain, nullptr);
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    CHECK(fd_ >= 0);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  // The signals stay blocked: the report must still be written, and the script has had them.
  ~SignalQueue() { ::close(fd_); }
  int get() const { return fd_; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  int fd_ = -1;
};

// The terminal sends its keys' signals to the whole foreground group, so the script has them already. A hang-up may
// reach the session's leader alone, so it is always passed on.
bool must_forward(const signalfd_siginfo& signal) { return signal.ssi_code != SI_KERNEL || signal.ssi_signo == SIGHUP; }

enum class Awaited { report, guardians_death, stop };

// Passes signals on until the guardian has reported or died, or `watch` ends it.
Awaited await_report(const SignalQueue& signals, int socket, pid_t guardian, const Watch& watch,
                     GuardianReport& report) {
  Nanos due = Nanos{monotonic_ns()} + Nanos{kWatchEvery * 1'000'000ull};
  for (;;) {
    pollfd what[2] = {{.fd = signals.get(), .events = POLLIN, .revents = 0},
                      {.fd = socket, .events = POLLIN, .revents = 0}};
    ::poll(what, 2, watch ? kWatchEvery : -1);
    if (const Nanos at{monotonic_ns()}; watch && at >= due) {
      due = at + Nanos{kWatchEvery * 1'000'000ull};
      if (!watch()) return Awaited::stop;
    }
    signalfd_siginfo signal{};
    while (::read(signals.get(), &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal))
      if (must_forward(signal)) ::kill(guardian, static_cast<int>(signal.ssi_signo));
    if (what[1].revents == 0) continue;
    const ssize_t got = ::recv(socket, &report, sizeof report, 0);
    if (got < 0 && errno == EINTR) continue;
    return got == static_cast<ssize_t>(sizeof report) ? Awaited::report : Awaited::guardians_death;
  }
}

void explain_start(const std::string& program, int error, Supervised& result) {
  struct stat status{};
  const bool named_file = program.find('/') != std::string::npos && ::stat(program.c_str(), &status) == 0;
  result.exit_status = error == ENOENT ? 127 : 126;
  if (error == ENOENT && named_file)
    result.problem = fmt::format("cannot run {}: the interpreter named in its first line is missing", program);
  else if (error == ENOENT)
    result.problem = fmt::format("cannot run {}: no such program; check its name and PATH", program);
  else if (named_file && S_ISDIR(status.st_mode))
    result.problem = fmt::format("cannot run {}: it is a folder; name the program in it", program);
  else if (error == EACCES)
    result.problem = fmt::format(
        "cannot run {}: it is not executable; make it so with chmod +x, or name its "
        "interpreter (python3 {})",
        program, program);
  else
    result.problem = fmt::format("cannot run {}: {}", program, errno_text(error));
}

std::string preload_value(const std::string& libraries) {
  const char* before = std::getenv("LD_PRELOAD");
  return before != nullptr && *before != '\0' ? fmt::format("{}:{}", before, libraries) : libraries;
}

void explain_unkillable(std::string_view names, Supervised& result) {
  if (names.empty()) return;
  if (!result.problem.empty()) result.problem += "; ";
  result.problem += fmt::format(
      "these processes of the script could not be ended: {}; they may wait for a disk, and end when it answers: look "
      "at them by hand",
      names);
}

void explain_end(const GuardianReport& report, Supervised& result) {
  const int status = report.wait_status;
  result.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.left_behind = report.left_behind;
  explain_unkillable(report.unkillable, result);
}

}  // namespace

Result<Supervised> supervise(const SharedSession& session, const std::vector<std::string>& command,
                             const Preloaded& preloaded, const Watch& watch) {
  CHECK(!command.empty());
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const SignalQueue signals;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(Errc::io, fmt::format("cannot start {}: no socket: {}", command.front(), errno_text(errno)));
  UniqueFd ours(ends[0]), guardians(ends[1]);
  ScriptStart start{.command = command,
                    .environment = {fmt::format("{}={}", kSessionVariable, session.path())},
                    .signal_mask = signals.before()};
  start.environment.insert(start.environment.end(), preloaded.environment.begin(), preloaded.environment.end());
  if (!preloaded.libraries.empty())
    start.environment.push_back(fmt::format("LD_PRELOAD={}", preload_value(preloaded.libraries)));
  const Nanos begin{monotonic_ns()};
  const pid_t guardian = ::fork();
  if (guardian < 0)
    return fail(Errc::io, fmt::format("cannot start {}: no new process: {}", command.front(), errno_text(errno)));
  if (guardian == 0) {
    ::close(ends[0]);  // or it would never see the supervisor's end
    guard(start, std::move(guardians));
  }
  ::signal(SIGPIPE, SIG_IGN);
  {
    const UniqueFd closed = std::move(guardians);
  }  // or we would never see the guardian's
  Supervised result;
  result.started = true;
  GuardianReport report;
  const Awaited awaited = await_report(signals, ours.get(), guardian, watch, report);
  const bool reported = awaited == Awaited::report;
  if (awaited == Awaited::stop) ::shutdown(ours.get(), SHUT_RDWR);  // The guardian ends all.
  ::waitpid(guardian, nullptr, 0);
  if (reported && report.exec_error != 0) {
    result.started = false;
    explain_start(command.front(), report.exec_error, result);
  } else if (reported) {
    explain_end(report, result);
  } else if (awaited == Awaited::stop) {
    result.exit_status = 1;
    explain_unkillable(names_of(kill_descendants(Nanos{1'000'000'000})), result);  // The guardian has tried for longer.
  } else {
    result.exit_status = 128 + SIGKILL;
    result.problem = "the guardian process was killed, and the script with it";
    explain_unkillable(names_of(kill_descendants(Nanos{10'000'000'000})), result);
  }
  result.ended = Nanos{reported ? report.ended_ns : monotonic_ns()};
  result.wall = result.ended - begin;
  return result;
}

bool has_waiting_signal() {
  sigset_t waiting;
  ::sigpending(&waiting);
  return std::ranges::any_of(std::array{SIGINT, SIGQUIT, SIGTERM, SIGHUP},
                             [&](int signal) { return ::sigismember(&waiting, signal) == 1; });
}

}  // namespace spillway
