#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
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
  const bool is_full = error == ENOSPC || error == EDQUOT;
  return fail(Errc::io, fmt::format("cannot write {}: {}; {}", path, errno_text(error),
                                    is_full ? "make room there, or name a file elsewhere"
                                            : "name a file in a folder that you can write to"));
}

// The open file that a link such as /dev/stdout leads to. Others hold it, too, and go on writing into it.
std::optional<int> descriptor_behind(std::filesystem::path path) {
  std::error_code error;
  const auto own = std::filesystem::canonical("/proc/self/fd", error);
  for (int links = 0; !error && links < 40; ++links) {
    const auto folder = std::filesystem::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
    const std::string name = path.filename();
    if (int number = -1; !error && folder == own) {
      const auto end = std::from_chars(name.data(), name.data() + name.size(), number);
      if (end.ec == std::errc{} && end.ptr == name.data() + name.size()) return number;
    }
    path = folder / std::filesystem::read_symlink(folder / name, error);
  }
  return std::nullopt;
}

// The file that will replace another one. It has no name until then, so that nothing is left of it if we are killed;
// or, where the file system cannot do that, a temporary one beside the other's.
struct Draft {
  UniqueFd fd;
  std::string name, target;
};

std::string temporary_name(const std::string& target, unsigned attempt) {
  return fmt::format("{}.{}-{}", target, ::getpid(), attempt);
}
constexpr unsigned kAttempts = 100;

// `there`: what path names now, if anything.
Result<Draft> open_draft(const std::string& path, const struct stat* there) {
  // What a link points to is replaced, not the link, and be it nothing yet.
  std::error_code error;
  std::filesystem::path end = path;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(end, error); ++links)
    end = end.parent_path() / std::filesystem::read_symlink(end, error);
  const std::string target = end.string(), folder = end.parent_path().string();
  const mode_t mode = there != nullptr ? 0600 : 0666;
  const int nameless = ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
  if (nameless >= 0) return Draft{UniqueFd(nameless), "", target};
  // Not mkstemp(), which gives rights that only umask() could mend, and that is every thread's.
  for (unsigned attempt = 0;; ++attempt) {
    std::string name = temporary_name(target, attempt);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) return Draft{UniqueFd(fd), std::move(name), target};
    if (errno != EEXIST || attempt == kAttempts) return cannot_write(path, errno);
  }
}

// 0 or an errno. Only a file with a name can replace another one.
int name(Draft& draft) {
  const std::string open_file = fmt::format("/proc/self/fd/{}", draft.fd.get());
  for (unsigned attempt = 0; draft.name.empty(); ++attempt) {
    std::string name = temporary_name(draft.target, attempt);
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      draft.name = std::move(name);
    else if (errno != EEXIST || attempt == kAttempts)
      return errno;
  }
  return 0;
}

// What some file systems tell only then.
int error_at_close(int fd) {
  const int copy = ::dup(fd);
  return copy < 0 || ::close(copy) != 0 ? errno : 0;
}

// In a sticky folder such as /tmp nobody may replace somebody else's file.
bool is_somebody_elses(const std::string& target, const struct stat& file) {
  struct stat folder{};
  const uid_t us = ::geteuid();
  if (us == 0 || file.st_uid == us) return false;
  return ::stat(std::filesystem::path(target).parent_path().c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) != 0 &&
         folder.st_uid != us;
}

}  // namespace

bool leads_to_descriptor(const std::string& path) { return descriptor_behind(path).has_value(); }

Result<> try_to_write(const std::string& path) {
  if (const auto open = descriptor_behind(path)) {
    const int flags = ::fcntl(*open, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? Result<>{} : Result<>(cannot_write(path, EBADF));
  }
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  TRY(Draft draft, open_draft(path, exists ? &status : nullptr));
  const int error = name(draft);
  if (!draft.name.empty()) ::unlink(draft.name.c_str());
  if (error != 0) return cannot_write(path, error);
  if (exists && is_somebody_elses(draft.target, status)) return cannot_write(path, EPERM);
  return {};
}

Result<> write_file(const std::string& path, std::string_view content) {
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    return fail(Errc::io, fmt::format("cannot write {}: it is a folder; name a file in it", path));
  // A pipe or a device is written to, never replaced; nor is a file without a name, which only a descriptor leads to.
  if (exists && (!S_ISREG(status.st_mode) || status.st_nlink == 0)) {
    // A pipe that nobody reads must not keep us waiting: then opening it fails (ENXIO).
    const int raw = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_TRUNC);
    if (raw < 0 && errno == ENXIO)
      return fail(Errc::io, fmt::format("cannot write {}: nobody reads from it; start the pipe's reader first", path));
    if (raw < 0) return cannot_write(path, errno);
    const UniqueFd fd(raw);
    ::fcntl(raw, F_SETFL, 0);
    const int error = write_all(fd.get(), content);
    return error == 0 ? Result<>{} : Result<>(cannot_write(path, error));
  }
  if (const auto open = descriptor_behind(path)) {
    const int error = write_all(*open, content);
    return error == 0 ? Result<>{} : Result<>(cannot_write(path, error));
  }
  TRY(Draft draft, open_draft(path, exists ? &status : nullptr));
  const int fd = draft.fd.get();
  const auto undo = [&](int error) {
    if (!draft.name.empty()) ::unlink(draft.name.c_str());
    return cannot_write(path, error);
  };
  if (exists && ::fchmod(fd, status.st_mode & 07777) != 0) return undo(errno);
  if (const int error = write_all(fd, content)) return undo(error);
  if (const int error = error_at_close(fd)) return undo(error);
  if (const int error = name(draft)) return undo(error);
  if (::rename(draft.name.c_str(), draft.target.c_str()) != 0) return undo(errno);
  return {};
}

void end_process(std::string_view message) noexcept {
  for (const std::string_view part : {std::string_view("spillway: "), message, std::string_view("\n")}) tell(part);
  std::_Exit(1);
}

Bytes file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return {std::numeric_limits<std::uint64_t>::max()};
  return {limit.rlim_cur};
}

void tell(std::string_view text) noexcept { static_cast<void>(write_all(STDERR_FILENO, text)); }

bool can_tell() noexcept {
  pollfd end{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&end, 1, 0) == 1;
}

}  // namespace spillway
