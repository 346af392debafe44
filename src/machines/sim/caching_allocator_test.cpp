#include "machines/sim/caching_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace spillway {
namespace {

constexpr std::uint64_t kMi = std::uint64_t{1} << 20;

TEST(CachingAllocator, SmallAndLargeRequestsHaveSegmentsOfTheirOwn) {
  CachingAllocator pool;
  EXPECT_EQ(pool.allocate(1_MiB), 0u);
  EXPECT_EQ(pool.reserved(), 2_MiB);
  EXPECT_EQ(pool.allocate({kMi + 1}), 2 * kMi);
  EXPECT_EQ(pool.reserved(), 22_MiB) << "requests below 10 MiB share segments of 20 MiB";
  EXPECT_EQ(pool.allocate({11 * kMi + 1}), 2 * kMi + kMi + 512);
  EXPECT_EQ(pool.allocate({11 * kMi + 1}), 22 * kMi);
  EXPECT_EQ(pool.reserved(), 34_MiB) << "a request for more gets whole blocks of 2 MiB";
  EXPECT_EQ(pool.allocate({512}), kMi) << "what is left of the first";
}

TEST(CachingAllocator, TheSmallestThatFitsIsTaken) {
  CachingAllocator pool;
  const std::uint64_t large = pool.allocate(40_MiB), small = pool.allocate(30_MiB);
  pool.free(large);
  pool.free(small);
  EXPECT_EQ(pool.allocate(30_MiB), small);
  EXPECT_EQ(pool.allocate(30_MiB), large);
  EXPECT_EQ(pool.allocate(10_MiB), large + 30 * kMi) << "the rest of it";
  EXPECT_EQ(pool.reserved(), 70_MiB);
}

TEST(CachingAllocator, LittleThatIsLeftOfALargeOneStaysWithIt) {
  CachingAllocator pool;
  const std::uint64_t first = pool.allocate(40_MiB);
  pool.free(first);
  EXPECT_EQ(pool.allocate(39_MiB), first);
  EXPECT_EQ(pool.allocate(2_MiB), 40 * kMi) << "in a segment of its own";
}

TEST(CachingAllocator, NeighboursThatAreFreeAreOne) {
  CachingAllocator pool;
  const std::uint64_t a = pool.allocate(5_MiB), b = pool.allocate(5_MiB), c = pool.allocate(5_MiB);
  pool.free(a);
  pool.free(c);
  pool.free(b);
  EXPECT_EQ(pool.allocate(20_MiB), 0u);
  EXPECT_EQ(pool.reserved(), 20_MiB);
}

TEST(CachingAllocator, SegmentsAreNot) {
  CachingAllocator pool;
  const std::uint64_t a = pool.allocate(20_MiB), b = pool.allocate(20_MiB);
  pool.free(a);
  pool.free(b);
  EXPECT_EQ(pool.allocate(40_MiB), 40 * kMi);
}

TEST(CachingAllocatorProperty, NoTwoOverlapAndWhatIsFreedIsUsedAgain) {
  EXPECT_TRUE(rc::check([] {
    CachingAllocator pool;
    std::map<std::uint64_t, std::uint64_t> used;
    const auto sizes = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 40 * kMi));
    for (const std::uint64_t size : sizes) {
      if (size % 3 == 0 && !used.empty()) {
        const auto freed = std::next(used.begin(), static_cast<std::ptrdiff_t>(size % used.size()));
        pool.free(freed->first);
        used.erase(freed);
      }
      const std::uint64_t address = pool.allocate({size});
      const auto after = used.lower_bound(address);
      const bool ends_before = after == used.end() || address + size <= after->first;
      const bool begins_after = after == used.begin() || std::prev(after)->first + std::prev(after)->second <= address;
      RC_ASSERT(ends_before && begins_after);
      RC_ASSERT(address + size <= pool.reserved().value);
      used.emplace(address, std::max<std::uint64_t>(size, 1));
    }
    for (const auto& [address, size] : used) pool.free(address);
    const Bytes reserved = pool.reserved();
    for (const std::uint64_t size : sizes) pool.free(pool.allocate({size}));
    RC_ASSERT(pool.reserved() == reserved);
  }));
}

}  // namespace
}  // namespace spillway
