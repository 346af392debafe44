#include "memory/block_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace spillway {
namespace {

constexpr BytesPerSecond kLink{std::uint64_t{1} << 30};  // A block of 2 MiB takes 1.95 ms.
constexpr Nanos kCopying = transfer_time(kBlockBytes, kLink);
constexpr Bytes kLarge = kMostBlockBytes * 64;

// Mapping takes the same time, whatever a block's size.
std::vector<BlockCost> costs_with(Nanos mapping) {
  std::vector<BlockCost> costs;
  for (const Bytes size : kBlockSizes) costs.push_back({.bytes = size, .mapping = mapping, .fault = {}});
  return costs;
}

TEST(BlockSize, IsTheSmallestWhoseMappingTakesAQuarterOfItsCopying) {
  EXPECT_EQ(block_size_for(costs_with(Nanos{1}), kLink, kLarge), 2_MiB);
  EXPECT_EQ(block_size_for(costs_with(Nanos{kCopying.value / 4}), kLink, kLarge), 2_MiB);
  EXPECT_EQ(block_size_for(costs_with(Nanos{kCopying.value / 4 + 1}), kLink, kLarge), 4_MiB);
  EXPECT_EQ(block_size_for(costs_with(kCopying), kLink, kLarge), 8_MiB);
}

TEST(BlockSize, IsTheLargestWhereMappingIsSlowForAll) {
  EXPECT_EQ(block_size_for(costs_with(kCopying * 1000), kLink, kLarge), 32_MiB);
  std::vector<BlockCost> growing = costs_with(kCopying);
  for (BlockCost& cost : growing) cost.mapping = transfer_time(cost.bytes, kLink);
  EXPECT_EQ(block_size_for(growing, kLink, kLarge), 32_MiB);
}

TEST(BlockSize, IsASmallPartOfTheDevice) {
  const std::vector<BlockCost> slow = costs_with(kCopying * 1000);
  EXPECT_EQ(block_size_for(slow, kLink, 8_MiB * 64), 8_MiB);
  EXPECT_EQ(block_size_for(slow, kLink, 8_MiB * 64 - 1_KiB), 4_MiB);
  EXPECT_EQ(block_size_for(slow, kLink, 1_MiB), 2_MiB) << "none is smaller";
}

}  // namespace
}  // namespace spillway
