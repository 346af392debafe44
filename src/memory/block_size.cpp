#include "memory/block_size.h"

#include "base/check.h"

namespace spillway {

Bytes block_size_for(std::span<const BlockCost> costs, BytesPerSecond link, Bytes device) {
  constexpr std::uint64_t kCopyingToMapping = 4, kLeastOnDevice = 64;
  CHECK(!costs.empty() && costs.front().bytes == kBlockBytes);
  Bytes chosen = kBlockBytes;
  for (const BlockCost& cost : costs) {
    CHECK(cost.bytes >= chosen);
    if (cost.bytes > kBlockBytes && cost.bytes * kLeastOnDevice > device) break;
    chosen = cost.bytes;
    if (cost.mapping * kCopyingToMapping <= transfer_time(cost.bytes, link)) break;
  }
  return chosen;
}

}  // namespace spillway
