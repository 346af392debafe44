#include "hook/session/pager_trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace spillway {
namespace {

// What the trial's process tells, in one piece: a pipe takes so much at once.
struct Answer {
  bool good = false;
  Pager::Found found{};
  Errc code{};
  std::uint32_t size = 0;
  std::array<char, 3500> message{};
};
static_assert(sizeof(Answer) <= 4096);

Answer answer_of(const PagerConfig& config) {
  Answer answer;
  if (const auto found = Pager::check(config)) {
    answer.good = true;
    answer.found = *found;
  } else {
    const std::string& message = found.error().message;
    answer.code = found.error().code;
    answer.size = static_cast<std::uint32_t>(std::min(message.size(), answer.message.size()));
    std::ranges::copy_n(message.begin(), answer.size, answer.message.begin());
  }
  return answer;
}

}  // namespace

Result<Pager::Found> try_pager(const PagerConfig& config, Nanos limit) {
  const auto failed = [](const char* step) {
    return fail(Errc::io, fmt::format("cannot try what the run needs ({}): {}", step, errno_text(errno)));
  };
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("pipe");
  const UniqueFd reads(ends[0]);
  std::optional<UniqueFd> writes(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return failed("fork");
  if (child == 0) {
    // Who reads what we print must see its end, though this process may not end for long.
    const UniqueFd nowhere = out_of_reach(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere.get(), standard);
    const Answer answer = answer_of(config);
    ::_exit(::write(writes->get(), &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  writes.reset();
  pollfd ready{.fd = reads.get(), .events = POLLIN, .revents = 0};
  const auto milliseconds = std::min<std::uint64_t>(limit.value / 1'000'000, std::numeric_limits<int>::max());
  int polled;
  while ((polled = ::poll(&ready, 1, limit == Nanos{} ? -1 : static_cast<int>(milliseconds))) < 0 && errno == EINTR) {
  }
  if (polled <= 0) {
    ::kill(child, SIGKILL);  // It ends when the disk lets it.
    return fail(Errc::io, fmt::format("{} has not answered for {}: a block on trial was to be written there; check the "
                                      "disk, name another directory with --ssd, or allow more time with --io-timeout",
                                      config.ssd_directory, to_text(limit)));
  }
  Answer answer;
  const bool whole = ::read(reads.get(), &answer, sizeof answer) == sizeof answer;
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!whole)
    return fail(Errc::unavailable, fmt::format("what the run needs could not be tried: the process that did so ended "
                                               "with status {}",
                                               WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)));
  if (answer.good) return answer.found;
  return fail(answer.code, std::string(answer.message.data(), answer.size));
}

}  // namespace spillway
