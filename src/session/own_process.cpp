#include "session/own_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace spillway {
namespace {

// In one piece: a pipe takes so much at once.
struct Answer {
  bool good = false;
  Errc code{};
  std::uint32_t size = 0;
  std::array<char, 4000> bytes{};  // the result, or the error's message
};
static_assert(sizeof(Answer) <= 4096);

Answer answer_of(Result<std::string> result) {
  if (result && result->size() > sizeof Answer::bytes) result = fail(Errc::unavailable, "its answer is too long");
  const std::string& bytes = result ? *result : result.error().message;
  Answer answer{.good = result.has_value(),
                .code = result ? Errc{} : result.error().code,
                .size = static_cast<std::uint32_t>(std::min(bytes.size(), sizeof Answer::bytes))};
  std::ranges::copy_n(bytes.begin(), answer.size, answer.bytes.begin());
  return answer;
}

// False: nothing has come within the limit.
bool has_come(int fd, Nanos limit) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  const auto milliseconds = std::min<std::uint64_t>(limit.value / 1'000'000, std::numeric_limits<int>::max());
  int polled;
  while ((polled = ::poll(&ready, 1, limit == Nanos{} ? -1 : static_cast<int>(milliseconds))) < 0 && errno == EINTR) {
  }
  return polled > 0;
}

}  // namespace

Result<std::string> bytes_from_own_process(const AskedOfDisk& asked, const std::function<Result<std::string>()>& body) {
  const auto failed = [&](const char* step) {
    return fail(Errc::io, fmt::format("cannot try {} ({}): {}", asked.disk, step, errno_text(errno)));
  };
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("pipe");
  const UniqueFd reads(ends[0]);
  std::optional<UniqueFd> writes(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return failed("fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // Nobody would hear of it.
    // Who reads what we print must see its end, though this process may not end for long.
    const UniqueFd nowhere = out_of_reach(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere.get(), standard);
    const Answer answer = answer_of(body());
    ::_exit(::write(writes->get(), &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  writes.reset();
  if (!has_come(reads.get(), asked.limit)) {
    ::kill(child, SIGKILL);  // It ends when the disk lets it.
    return fail(Errc::io,
                fmt::format("{} has not answered for {}: {}", asked.disk, to_text(asked.limit), asked.if_late));
  }
  Answer answer;
  const bool whole = ::read(reads.get(), &answer, sizeof answer) == sizeof answer;
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!whole)
    return fail(Errc::unavailable,
                fmt::format("{} cannot be tried: the process that did so ended with status {}", asked.disk,
                            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)));
  std::string bytes(answer.bytes.data(), answer.size);
  if (answer.good) return bytes;
  return fail(answer.code, std::move(bytes));
}

}  // namespace spillway
