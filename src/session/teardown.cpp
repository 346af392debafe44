#include "session/teardown.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"

namespace spillway {

Result<Teardown> Teardown::make() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(Errc::io, fmt::format("cannot make a pipe: {}", errno_text(errno)));
  ::close(ends[1]);
  return Teardown(UniqueFd(ends[0]));
}

std::string Teardown::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), end_.get()); }

bool Teardown::is_over(Nanos limit) const {
  pollfd end{.fd = end_.get(), .events = 0, .revents = 0};
  return ::poll(&end, 1, static_cast<int>(limit.value / 1'000'000)) > 0 && (end.revents & POLLHUP) != 0;
}

}  // namespace spillway
