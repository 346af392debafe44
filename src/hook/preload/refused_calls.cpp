// A page that the script has locked, protected or unmapped cannot be moved: that would end the run when a block is to
// leave, long after the call that is to blame. So the call fails. Whoever passes libc by (syscall(), a handle of libc's
// own) is still found then.
#include "hook/preload/refused_calls.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "hook/preload/text.h"

namespace spillway {
namespace {

std::atomic<std::uintptr_t> begin{0}, end{0};
std::atomic<Session*> told{nullptr};

bool is_managed(const void* address, std::size_t bytes) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t last = end.load(std::memory_order_acquire), first = begin.load(std::memory_order_relaxed);
  return from < last && (from >= first ? bytes > 0 : bytes > first - from);
}

int refused(const char* call, int error) noexcept {
  add_notice(*told.load(std::memory_order_relaxed),
             (Sentence() << "the script called " << call
                         << " on a tensor's memory, which spillway could not serve any more then: the call has failed")
                 .text());
  errno = error;
  return -1;
}

// The kernel keeps it with the addresses, and moves no page to or from a block that has it in a part only.
bool is_lasting(int advice) noexcept {
  // MADV_DOFORK would give forked processes the pages that are here, and zeroes in place of the others.
  return advice == MADV_MERGEABLE || advice == MADV_NOHUGEPAGE || advice == MADV_DOFORK || advice == MADV_WIPEONFORK ||
         advice == MADV_DODUMP;
}

// So is this, but nobody is worse off without it.
bool is_hint(int advice) noexcept { return advice == MADV_SEQUENTIAL || advice == MADV_RANDOM; }

bool has_range() noexcept { return end.load(std::memory_order_acquire) != 0; }

bool changes(int protection) noexcept { return protection != (PROT_READ | PROT_WRITE); }

}  // namespace

void refuse_calls_on(ManagedRange range, Session& session) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(range.begin);
  told.store(&session, std::memory_order_relaxed);
  begin.store(from, std::memory_order_relaxed);
  end.store(from + range.bytes, std::memory_order_release);
}

}  // namespace spillway

#define SPILLWAY_EXPORT extern "C" __attribute__((visibility("default")))

SPILLWAY_EXPORT int mlock(const void* address, size_t bytes) noexcept {
  if (spillway::is_managed(address, bytes)) return spillway::refused("mlock", ENOMEM);
  return static_cast<int>(::syscall(SYS_mlock, address, bytes));
}

SPILLWAY_EXPORT int mlock2(const void* address, size_t bytes, unsigned flags) noexcept {
  if (spillway::is_managed(address, bytes)) return spillway::refused("mlock2", ENOMEM);
  return static_cast<int>(::syscall(SYS_mlock2, address, bytes, flags));
}

// It would make resident what may be away, and the places that blocks are moved to.
SPILLWAY_EXPORT int mlockall(int flags) noexcept {
  if ((flags & MCL_CURRENT) != 0 && spillway::has_range()) return spillway::refused("mlockall", ENOMEM);
  return static_cast<int>(::syscall(SYS_mlockall, flags));
}

SPILLWAY_EXPORT int mprotect(void* address, size_t bytes, int protection) noexcept {
  if (spillway::changes(protection) && spillway::is_managed(address, bytes))
    return spillway::refused("mprotect", EACCES);
  return static_cast<int>(::syscall(SYS_mprotect, address, bytes, protection));
}

SPILLWAY_EXPORT int pkey_mprotect(void* address, size_t bytes, int protection, int key) noexcept {
  constexpr int kNone = -1, kUsual = 0;
  if ((spillway::changes(protection) || (key != kNone && key != kUsual)) && spillway::is_managed(address, bytes))
    return spillway::refused("pkey_mprotect", EACCES);
  if (key == kNone) return ::mprotect(address, bytes, protection);  // So it is where there are no keys.
  return static_cast<int>(::syscall(SYS_pkey_mprotect, address, bytes, protection, key));
}

SPILLWAY_EXPORT int munmap(void* address, size_t bytes) noexcept {
  if (spillway::is_managed(address, bytes)) return spillway::refused("munmap", EINVAL);
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}

SPILLWAY_EXPORT void* mremap(void* address, size_t bytes, size_t new_bytes, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* to = (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  // Of no bytes it makes a second mapping.
  const bool touches = spillway::is_managed(address, bytes > 0 ? bytes : 1) ||
                       ((flags & MREMAP_FIXED) != 0 && spillway::is_managed(to, new_bytes));
  if (touches) {
    spillway::refused("mremap", EINVAL);
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mremap, address, bytes, new_bytes, flags, to));
}

SPILLWAY_EXPORT int madvise(void* address, size_t bytes, int advice) noexcept {
  if (spillway::is_lasting(advice) && spillway::is_managed(address, bytes)) return spillway::refused("madvise", EINVAL);
  if (spillway::is_hint(advice) && spillway::is_managed(address, bytes)) return 0;
  return static_cast<int>(::syscall(SYS_madvise, address, bytes, advice));
}

// The C library's own makes the system call past the one above.
SPILLWAY_EXPORT int posix_madvise(void* address, size_t bytes, int advice) noexcept {
  if (advice == POSIX_MADV_DONTNEED) return 0;  // As there: it may not lose what was written.
  return ::madvise(address, bytes, advice) == 0 ? 0 : errno;
}
