#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory/tier.h"

namespace spillway {

// Copies a block that is write-protected: nobody can change it. ThreadSanitizer cannot know that, so it must not see
// the reads.
#ifdef __SANITIZE_THREAD__
[[gnu::no_sanitize("thread"), gnu::noinline]] inline void copy_block(std::byte* to, const std::byte* from) {
  const auto* source = reinterpret_cast<const volatile std::uint64_t*>(from);
  auto* target = reinterpret_cast<volatile std::uint64_t*>(to);
  for (std::size_t at = 0; at < kBlockBytes.value / sizeof *source; ++at) target[at] = source[at];
}
#else
inline void copy_block(std::byte* to, const std::byte* from) { std::memcpy(to, from, kBlockBytes.value); }
#endif

}  // namespace spillway
