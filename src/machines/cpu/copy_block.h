#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace spillway {

// Copies a block, or a piece, that is write-protected: nobody can change it. ThreadSanitizer cannot know that, so it
// must not see the reads.
#ifdef __SANITIZE_THREAD__
[[gnu::no_sanitize("thread"), gnu::noinline]] inline void copy_block(std::byte* to, const std::byte* from,
                                                                     std::size_t bytes) {
  const auto* source = reinterpret_cast<const volatile std::uint64_t*>(from);
  auto* target = reinterpret_cast<volatile std::uint64_t*>(to);
  for (std::size_t at = 0; at < bytes / sizeof *source; ++at) target[at] = source[at];
}
#else
inline void copy_block(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
#endif

}  // namespace spillway
