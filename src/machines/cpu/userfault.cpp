#include "machines/cpu/userfault.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/files.h"

// Linux 6.8; not in the headers of older distributions.
#ifndef UFFDIO_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#define UFFDIO_MOVE_MODE_DONTWAKE (std::uint64_t{1} << 0)
#define UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES (std::uint64_t{1} << 1)
struct uffdio_move {
  std::uint64_t dst, src, len, mode;
  std::int64_t move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

namespace spillway {
namespace {

constexpr auto kUntilMapped = std::chrono::seconds(10);

std::uint64_t number(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

Result<UniqueFd> open_descriptor() {
  const int flags = O_CLOEXEC | O_NONBLOCK;
  const int device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  const int device_error = errno;
  if (device >= 0) {
    const int fd = ::ioctl(device, USERFAULTFD_IOC_NEW, flags);
    ::close(device);
    if (fd >= 0) return UniqueFd(fd);
  }
  const auto fd = static_cast<int>(::syscall(SYS_userfaultfd, flags));
  if (fd >= 0) return UniqueFd(fd);
  const int call_error = errno;
  if (call_error == ENOSYS && device_error == ENOENT)
    return fail(Errc::unavailable,
                "page faults cannot be served: this kernel has no userfaultfd, or a seccomp profile hides it; use a "
                "kernel with CONFIG_USERFAULTFD (Linux 6.1 or newer), in a container a seccomp profile that allows "
                "userfaultfd");
  if (call_error == EMFILE || call_error == ENFILE)
    return fail(Errc::unavailable, fmt::format("page faults cannot be served: userfaultfd: {}; raise the limit on open "
                                               "files (ulimit -n)",
                                               errno_text(call_error)));
  return fail(
      Errc::unavailable,
      fmt::format(
          "page faults cannot be served: userfaultfd: {}; /dev/userfaultfd: {}. Faults of user mode only would not "
          "do, since a system call on an evicted tensor would fail. Run as root, or grant access once with "
          "'sudo setfacl -m u:{}:rw /dev/userfaultfd' (undo: 'sudo setfacl -b /dev/userfaultfd'), or with 'sudo "
          "sysctl vm.unprivileged_userfaultfd=1'; in Docker add '--device /dev/userfaultfd' and a seccomp profile that "
          "allows userfaultfd",
          errno_text(call_error), errno_text(device_error), ::getuid()));
}

// 0 or an errno.
int shake_hands(int fd, std::uint64_t features, std::uint64_t& offered) {
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  if (::ioctl(fd, UFFDIO_API, &api) != 0) return errno;
  offered = api.features;
  return 0;
}

int result_of(int returned) { return returned == 0 ? 0 : errno; }

}  // namespace

Result<Userfault> Userfault::open() {
  // A descriptor answers once, and refuses features that it does not know: ask on one, use another.
  std::uint64_t offered = 0;
  {
    TRY(const UniqueFd probe, open_descriptor());
    if (const int error = shake_hands(probe.get(), 0, offered); error != 0)
      return fail(Errc::unavailable, fmt::format("page faults cannot be served: UFFDIO_API: {}", errno_text(error)));
  }
  constexpr std::uint64_t kNeeded = UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if ((offered & kNeeded) != kNeeded)
    return fail(
        Errc::unavailable,
        "page faults cannot be served: this kernel's userfaultfd names no threads or protects no pages; use Linux 6.1 "
        "or newer on x86-64");
  const bool can_move = (offered & UFFD_FEATURE_MOVE) != 0;
  TRY(UniqueFd fd, open_descriptor());
  // Without the event, mremap() would quietly make zeroes of what is away.
  if (const int error =
          shake_hands(fd.get(), kNeeded | (offered & (UFFD_FEATURE_MOVE | UFFD_FEATURE_EVENT_REMAP)), offered);
      error != 0)
    return fail(Errc::unavailable, fmt::format("page faults cannot be served: UFFDIO_API: {}", errno_text(error)));
  return Userfault(out_of_reach(std::move(fd)), can_move);
}

namespace {

Result<> register_range(int fd, std::byte* begin, std::size_t bytes, std::uint64_t mode) {
  uffdio_register request{};
  request.range = {number(begin), bytes};
  request.mode = mode;
  if (::ioctl(fd, UFFDIO_REGISTER, &request) == 0) return {};
  return fail(Errc::unavailable, fmt::format("page faults cannot be served: UFFDIO_REGISTER: {}", errno_text(errno)));
}

}  // namespace

Result<> Userfault::watch(std::byte* begin, std::size_t bytes) {
  return register_range(fd(), begin, bytes, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP);
}

Result<> Userfault::admit(std::byte* begin, std::size_t bytes) {
  return register_range(fd(), begin, bytes, UFFDIO_REGISTER_MODE_WP);
}

std::size_t Userfault::read(std::span<Fault> into) const {
  std::array<uffd_msg, 16> messages;
  const std::size_t wanted = std::min(messages.size(), into.size());
  const ssize_t got = ::read(fd(), messages.data(), wanted * sizeof(uffd_msg));
  if (got <= 0) return 0;
  std::size_t count = 0;
  for (std::size_t at = 0; at < static_cast<std::size_t>(got) / sizeof(uffd_msg); ++at) {
    const uffd_msg& message = messages[at];
    if (message.event == UFFD_EVENT_REMAP)
      into[count++] = {.address = reinterpret_cast<std::byte*>(message.arg.remap.from), .moved_away = true};
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    const auto& fault = message.arg.pagefault;
    into[count++] = {reinterpret_cast<std::byte*>(fault.address), static_cast<pid_t>(fault.feat.ptid),
                     (fault.flags & UFFD_PAGEFAULT_FLAG_WP) != 0};
  }
  return count;
}

// Note [Pages that were moved and not counted]
// Linux 6.18 to 7.1: a page that changes meanwhile (its accessed bit will do) makes the kernel try again; what it moves
// then is not counted, and it tries to move the same pages once more. That ends with EEXIST, since they are there: told
// at once, or by the next call where pages before them were counted. So they are right behind those, and go back before
// anything else is decided; pages that never left are in the way of that, and stay. (Mended by "userfaultfd: reset err
// to be 0 when move_pages_ptes succeeded".)
Userfault::Returned Userfault::return_uncounted(std::byte* to, std::byte* from, std::size_t bytes) const {
  const auto deadline = std::chrono::steady_clock::now() + kUntilMapped;
  bool some = false;
  for (std::size_t at = 0; at < bytes;) {
    uffdio_move request{.dst = number(from) + at,
                        .src = number(to) + at,
                        .len = kPageBytes,
                        .mode = UFFDIO_MOVE_MODE_DONTWAKE,
                        .move = 0};
    const int error = result_of(::ioctl(fd(), UFFDIO_MOVE, &request));
    if (error == ENOENT) break;
    some |= error == 0;
    if (error == 0 || error == EEXIST)  // It never left; or this move was not counted, either.
      at += kPageBytes;
    else if ((error != EAGAIN && error != EBUSY) || std::chrono::steady_clock::now() >= deadline)
      return Returned::not_all;
  }
  return some ? Returned::some : Returned::none;
}

int Userfault::move(std::byte* to, std::byte* from, std::size_t bytes, std::chrono::microseconds patience,
                    bool* came_back, bool may_have_holes) const {
  std::size_t done = 0;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (int tries = 0;; ++tries) {
    uffdio_move request{};
    request.dst = number(to) + done;
    request.src = number(from) + done;
    request.len = bytes - done;
    request.mode = UFFDIO_MOVE_MODE_DONTWAKE | (may_have_holes ? UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES : 0);
    if (::ioctl(fd(), UFFDIO_MOVE, &request) == 0) return 0;
    int error = errno;
    if (request.move > 0) done += static_cast<std::size_t>(request.move);
    const bool is_late = std::chrono::steady_clock::now() >= deadline;
    if (error == EEXIST || (is_late && request.move > 0)) {  // See Note [Pages that were moved and not counted].
      const Returned returned = return_uncounted(to + done, from + done, bytes - done);
      if (returned == Returned::not_all) return EFAULT;
      if (returned == Returned::some && came_back != nullptr) *came_back = true;
      if (returned == Returned::some && error == EEXIST) error = EAGAIN;
    }
    const bool worth_another_try = error == EAGAIN || error == EBUSY;
    if (worth_another_try && !is_late) {
      if (tries < 64)
        ::sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      continue;
    }
    if (came_back != nullptr) *came_back |= done > 0;
    // What has gone comes back, and whoever faulted on it in between goes on.
    if (done > 0 && move(from, to, done, std::chrono::seconds(10)) != 0) return EFAULT;
    wake(from, bytes);
    return error;
  }
}

// EAGAIN lasts while the address space changes, until somebody has read of that: in a child that may be us.
int Userfault::copy(std::byte* to, const std::byte* from, std::size_t bytes, bool protect) const {
  const auto deadline = std::chrono::steady_clock::now() + kUntilMapped;
  for (std::size_t done = 0; done < bytes;) {
    uffdio_copy request{};
    request.dst = number(to) + done;
    request.src = number(from) + done;
    request.len = bytes - done;
    request.mode = UFFDIO_COPY_MODE_DONTWAKE | (protect ? UFFDIO_COPY_MODE_WP : 0);
    if (::ioctl(fd(), UFFDIO_COPY, &request) == 0) return 0;
    const int error = errno;
    if (request.copy > 0) done += static_cast<std::size_t>(request.copy);
    if (error != EAGAIN || std::chrono::steady_clock::now() >= deadline) return error;
  }
  return 0;
}

int Userfault::zero(std::byte* at, std::size_t bytes) const {
  uffdio_zeropage request{};
  request.range = {number(at), bytes};
  return result_of(::ioctl(fd(), UFFDIO_ZEROPAGE, &request));
}

int Userfault::protect(std::byte* at, std::size_t bytes, bool on) const {
  const auto deadline = std::chrono::steady_clock::now() + kUntilMapped;
  for (;;) {
    uffdio_writeprotect request{};
    request.range = {number(at), bytes};
    request.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE;
    const int error = result_of(::ioctl(fd(), UFFDIO_WRITEPROTECT, &request));
    if (error != EAGAIN || std::chrono::steady_clock::now() >= deadline) return error;
  }
}

int Userfault::wake(std::byte* at, std::size_t bytes) const {
  uffdio_range range{number(at), bytes};
  return result_of(::ioctl(fd(), UFFDIO_WAKE, &range));
}

}  // namespace spillway
