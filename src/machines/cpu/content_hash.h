#pragma once

#include <xxhash.h>

#include <cstddef>

#include "memory/tier.h"

namespace spillway {

// Of a whole block. Blocks that differ, and were not made to have the same one, have it with a probability of 2^-128.
using ContentHash = XXH128_hash_t;

inline ContentHash content_hash(const std::byte* block) { return XXH3_128bits(block, kBlockBytes.value); }
inline bool same(const ContentHash& a, const ContentHash& b) { return XXH128_isEqual(a, b) != 0; }

}  // namespace spillway
