#include "machines/cpu/content_hash.h"

#define XXH_INLINE_ALL  // Compiled here, with -O3: distributions' libraries take 1.5 times as long.
#include <xxhash.h>

#include "memory/tier.h"

namespace spillway {

ContentHash content_hash(const std::byte* block, std::size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(block, bytes);
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace spillway
