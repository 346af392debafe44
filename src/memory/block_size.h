#pragma once

#include <array>
#include <span>

#include "base/units.h"
#include "memory/tier.h"

namespace spillway {

// What blocks of a GPU may be as large as. Larger ones cost fewer calls that map, and move bytes that nobody wanted.
inline constexpr std::array<Bytes, 5> kBlockSizes{kBlockBytes, 4_MiB, 8_MiB, 16_MiB, kMostBlockBytes};

// As measured. Beyond what the bytes take on the link:
struct BlockCost {
  Bytes bytes;
  Nanos mapping;  // to map a block and to allow access to it
  Nanos fault;    // from when one is wanted until it is there
};

// The smallest whose mapping takes a quarter of its copying at most, but no more than a small part of the device.
// `costs`: ascending, kBlockBytes first.
Bytes block_size_for(std::span<const BlockCost> costs, BytesPerSecond link, Bytes device);

}  // namespace spillway
