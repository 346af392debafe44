#include "machines/real/spill_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "memory/tier.h"

namespace spillway {
namespace {

// Space is allocated up to 256 MiB at a time, since each call costs milliseconds; but no more than a small part of what
// is there beyond what is asked for, since others may need it.
constexpr Bytes kMostAhead = 256_MiB;
constexpr std::uint32_t kPartAhead = 16;

auto refuse(Errc code, const std::string& directory, const std::string& reason) {
  return fail(code, fmt::format("cannot spill to {}: {}", directory, reason));
}

Result<> examine(const std::string& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0)
    return refuse(Errc::bad_input, directory,
                  fmt::format("{}; name a directory on an SSD with --ssd", errno_text(errno)));
  if (!S_ISDIR(status.st_mode))
    return refuse(Errc::bad_input, directory, "it is not a directory; name one on an SSD with --ssd");
  struct statfs system{};
  if (::statfs(directory.c_str(), &system) != 0) return refuse(Errc::io, directory, errno_text(errno));
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)
    return refuse(Errc::bad_input, directory,
                  "it lies in a tmpfs or ramfs, whose files take up the very memory that is to be spared; name a "
                  "directory on an SSD with --ssd");
  return {};
}

// A file without a name; where the file system cannot make one, a file whose name is taken away at once.
Result<UniqueFd> make_nameless(const std::string& directory) {
  constexpr int kFlags = O_DIRECT | O_CLOEXEC;
  const int nameless = ::open(directory.c_str(), O_TMPFILE | O_RDWR | kFlags, 0600);
  if (nameless >= 0) return UniqueFd(nameless);
  int error = errno;
  if (error == EOPNOTSUPP || error == EISDIR || error == ENOENT) {
    std::string name = directory + "/.spillway-XXXXXX";
    const int named = ::mkostemp(name.data(), kFlags);
    error = errno;
    ::unlink(name.c_str());  // Where O_DIRECT was refused, the file may be there all the same.
    if (named >= 0) return UniqueFd(named);
  }
  switch (error) {
    case EINVAL:
      return refuse(Errc::unavailable, directory,
                    "its file system takes no O_DIRECT, so spilled data would stay in memory; name a directory on ext4 "
                    "or xfs with --ssd");
    case EROFS:
    case EACCES:
      return refuse(Errc::bad_input, directory,
                    fmt::format("{}; name a directory that you may write to with --ssd", errno_text(error)));
    default:
      return refuse(Errc::io, directory,
                    fmt::format("cannot make a file: {}; name another directory with --ssd", errno_text(error)));
  }
}

std::string why_not(int error) {
  switch (error) {
    case EOPNOTSUPP:
      return "its file system cannot allocate ahead; name a directory on ext4 or xfs with --ssd";
    case ENOSPC:
      return errno_text(error) +
             ": what was free at the start has been taken since; free some space, or name another directory with --ssd";
    case EDQUOT:
      return errno_text(error) + "; raise the quota, or name another directory with --ssd";
    case EFBIG:
      return errno_text(error) + "; raise the limit on file sizes (ulimit -f)";
    default:
      return errno_text(error);
  }
}

std::string_view remedy_for(Bytes asked, Bytes available, Bytes usable) {
  if (asked > Bytes{}) return "raise --ssd-capacity";
  if (usable < available) return "raise the limit on file sizes (ulimit -f)";
  return "free some space there before the run, or name a larger disk with --ssd";
}

}  // namespace

Result<SpillFile> SpillFile::open(const std::string& directory, Bytes capacity, Bytes slot_bytes) {
  TRY_VOID(examine(directory));
  TRY(UniqueFd fd, make_nameless(directory));
  struct statvfs system{};
  if (::fstatvfs(fd.get(), &system) != 0) return refuse(Errc::io, directory, errno_text(errno));
  const Bytes available{static_cast<std::uint64_t>(system.f_bavail) * system.f_frsize};
  const Bytes usable = std::min(available, file_size_limit());
  if (capacity > available)
    return refuse(
        Errc::bad_input, directory,
        fmt::format("it has {} free, not {}; free some space, ask for less with --ssd-capacity or name another "
                    "directory with --ssd",
                    to_text(available), to_text(capacity)));
  if (capacity > usable)
    return refuse(Errc::bad_input, directory,
                  fmt::format("the limit on file sizes (ulimit -f) is {}, below the {} asked for; raise the limit",
                              to_text(usable), to_text(capacity)));
  const std::uint64_t slots = (capacity.value > 0 ? capacity : usable).value / slot_bytes.value;
  if (slots == 0)
    return refuse(
        Errc::bad_input, directory,
        fmt::format("there is room for {}, less than one block of {}; free some space, raise --ssd-capacity or "
                    "name another directory with --ssd",
                    to_text(capacity.value > 0 ? capacity : usable), to_text(slot_bytes)));
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  return SpillFile(directory, out_of_reach(std::move(fd)), slot_bytes,
                   static_cast<std::uint32_t>(std::min(slots, kMost)), remedy_for(capacity, available, usable));
}

Result<> SpillFile::reserve(std::uint32_t slots) { return reserve(slots, capacity_slots_); }

// Rounded up, but not beyond `most`.
Result<> SpillFile::reserve(std::uint32_t slots, std::uint32_t most) {
  CHECK(most <= capacity_slots_);
  const MutexLock lock(*growing_);
  const std::uint32_t have = reserved_slots();
  if (slots <= have) return {};
  const auto grow = [&](std::uint32_t to) {
    const Bytes size = slot_bytes_ * to;
    if (size > file_size_limit()) return EFBIG;  // The call itself would raise SIGXFSZ.
    const auto old_size = static_cast<off_t>((slot_bytes_ * have).value);
    while (::fallocate(fd(), 0, old_size, static_cast<off_t>(size.value) - old_size) != 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      static_cast<void>(::ftruncate(fd(), old_size));  // What it could have would be nobody's, and the disk full.
      return error;
    }
    CHECK(to > have && to <= most);
    reserved_.store(to, std::memory_order_release);
    return 0;
  };
  int error = ENOSPC;
  if (slots <= most) {
    // Not yet for the first one, the trial of who only looks whether it works.
    const std::uint64_t ahead =
        have == 0 ? 0 : std::min(free_slots() / kPartAhead, kMostAhead.value / slot_bytes_.value);
    const std::uint32_t roomy =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max<std::uint64_t>(slots, have + ahead), most));
    error = grow(roomy);
    if (error != 0 && roomy > slots) error = grow(slots);
    if (error == 0) return {};
  }
  return fail(error == ENOSPC || error == EDQUOT || error == EFBIG ? Errc::out_of_memory : Errc::io,
              fmt::format("no space for {} in {}: {} are allocated, at most {} may be; {}",
                          to_text(slot_bytes_ * slots), directory_, to_text(slot_bytes_ * have), to_text(capacity()),
                          slots > most ? std::string(remedy_) : why_not(error)));
}

std::uint64_t SpillFile::free_slots() const {
  struct statvfs system{};
  if (::fstatvfs(fd(), &system) != 0) return 0;
  return static_cast<std::uint64_t>(system.f_bavail) * system.f_frsize / slot_bytes_.value;
}

void SpillFile::reserve_if_plenty(std::uint32_t slots) {
  if (!most_if_plenty_) {
    most_if_plenty_ =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(reserved_slots() + free_slots() / 2, capacity_slots_));
  }
  if (!reserve(std::min(slots, *most_if_plenty_), *most_if_plenty_)) most_if_plenty_ = reserved_slots();
}

std::optional<std::uint32_t> SpillFile::take() {
  if (!free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if (used_before_ == reserved_slots()) return std::nullopt;
  return used_before_++;
}

}  // namespace spillway
