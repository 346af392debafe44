#pragma once

#include <cstddef>
#include <cstdint>

namespace spillway {

// XXH3, 128 bits. Of a whole block, or of a whole piece. Those that differ, and were not made to have the same one,
// have it with a probability of 2^-128.
struct ContentHash {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const ContentHash&, const ContentHash&) = default;
};
ContentHash content_hash(const std::byte* block, std::size_t bytes);

}  // namespace spillway
