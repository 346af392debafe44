#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "base/unique_fd.h"

namespace spillway {

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

Result<std::string> read_file(const std::string& path, Bytes limit) {
  const int raw = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0)
    return fail(Errc::io,
                fmt::format("cannot open {}: {}; check the name and its permissions", path, errno_text(errno)));
  const UniqueFd fd(raw);
  struct stat status{};
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
      return fail(Errc::bad_input,
                  fmt::format("cannot read {}: it is larger than {}, the most that is read; is it the file you meant?",
                              path, to_text(limit)));
  }
}

namespace {

// Writes all of it; 0, or the error number.
int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t put = ::write(fd, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

std::unexpected<Error> cannot_write(const std::string& path, int error) {
  return fail(Errc::io, fmt::format("cannot write {}: {}; name a file in a folder that you can write to", path,
                                    errno_text(error)));
}

}  // namespace

Result<> write_file(const std::string& path, std::string_view content) {
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    return fail(Errc::io, fmt::format("cannot write {}: it is a folder; name a file in it", path));
  if (exists && !S_ISREG(status.st_mode)) {  // A pipe or a device is written to, never replaced.
    // A pipe that nobody reads must not keep us waiting: then opening it fails (ENXIO).
    const int raw = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (raw < 0 && errno == ENXIO)
      return fail(Errc::io, fmt::format("cannot write {}: nobody reads from it; start the pipe's reader first", path));
    if (raw < 0) return cannot_write(path, errno);
    const UniqueFd fd(raw);
    ::fcntl(raw, F_SETFL, 0);
    const int error = write_all(fd.get(), content);
    return error == 0 ? Result<>{} : Result<>(cannot_write(path, error));
  }
  // What a link points to is replaced, not the link.
  std::error_code ignored;
  const std::string target = exists ? std::filesystem::canonical(path, ignored).string() : path;
  std::string temporary = target + ".XXXXXX";
  const int raw = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (raw < 0) return cannot_write(path, errno);
  const UniqueFd fd(raw);
  const auto give_up = [&](int error) {
    ::unlink(temporary.c_str());
    return cannot_write(path, error);
  };
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd.get(), exists ? status.st_mode & 07777 : 0666 & ~mask) != 0) return give_up(errno);
  if (const int error = write_all(fd.get(), content)) return give_up(error);
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return give_up(errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) return give_up(errno);
  return {};
}

void end_process(std::string_view message) noexcept {
  for (const std::string_view part : {std::string_view("spillway: "), message, std::string_view("\n")}) tell(part);
  std::_Exit(1);
}

void tell(std::string_view text) noexcept { static_cast<void>(write_all(STDERR_FILENO, text)); }

}  // namespace spillway
