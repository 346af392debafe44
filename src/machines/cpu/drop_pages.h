#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "base/check.h"

namespace spillway {

// Gives the memory back to the kernel, also what the script has locked: MADV_DONTNEED_LOCKED (Linux 5.18; not in the
// headers of older distributions).
inline void drop_pages(std::byte* at, std::size_t bytes) {
  constexpr int kDropLocked = 24;
  CHECK(::madvise(at, bytes, MADV_DONTNEED) == 0 || ::madvise(at, bytes, kDropLocked) == 0);
}

}  // namespace spillway
