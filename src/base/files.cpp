#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/text.h"
#include "base/unique_fd.h"

namespace spillway {

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

Result<std::string> read_file(const std::string& path, Bytes limit) {
  const int raw = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0) return fail(Errc::io, fmt::format("cannot open {}: {}", path, errno_text(errno)));
  const UniqueFd fd(raw);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0)
    return fail(Errc::io, fmt::format("cannot examine {}: {}", path, errno_text(errno)));
  if (!S_ISREG(status.st_mode))
    return fail(Errc::io, fmt::format("cannot read {}: it is not a regular file; name a file", path));
  std::string content;
  for (;;) {
    constexpr std::size_t kStep = 1 << 20;
    const std::size_t used = content.size();
    content.resize(used + kStep);
    const ssize_t got = ::read(fd.get(), content.data() + used, kStep);
    if (got < 0 && errno == EINTR) {
      content.resize(used);
      continue;
    }
    if (got < 0) return fail(Errc::io, fmt::format("cannot read {}: {}", path, errno_text(errno)));
    content.resize(used + static_cast<std::size_t>(got));
    if (got == 0) return content;
    if (content.size() > limit.value)
      return fail(Errc::bad_input, fmt::format("cannot read {}: it is larger than {}", path, to_text(limit)));
  }
}

Result<> write_file(const std::string& path, std::string_view content) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return fail(Errc::io, fmt::format("cannot write {}: it is a folder; name a file in it", path));
  std::string temporary = path + ".XXXXXX";
  const int raw = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (raw < 0) return fail(Errc::io, fmt::format("cannot write {}: {}", path, errno_text(errno)));
  const UniqueFd fd(raw);
  const auto give_up = [&](int error) {
    ::unlink(temporary.c_str());
    return fail(Errc::io, fmt::format("cannot write {}: {}", path, errno_text(error)));
  };
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd.get(), 0666 & ~mask) != 0) return give_up(errno);
  while (!content.empty()) {
    const ssize_t put = ::write(fd.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return give_up(errno);
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return give_up(errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up(errno);
  return {};
}

}  // namespace spillway
