#include "hook/torch/cuda/device_statistics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace spillway {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

constexpr std::size_t kMiB = std::size_t{1} << 20;

const Stat& all(const StatArray& array) { return array[static_cast<std::size_t>(StatType::AGGREGATE)]; }
const Stat& small(const StatArray& array) { return array[static_cast<std::size_t>(StatType::SMALL_POOL)]; }
const Stat& large(const StatArray& array) { return array[static_cast<std::size_t>(StatType::LARGE_POOL)]; }

void expect(const Stat& stat, Stat expected, int line) {
  EXPECT_EQ(stat.current, expected.current) << "line " << line;
  EXPECT_EQ(stat.peak, expected.peak) << "line " << line;
  EXPECT_EQ(stat.allocated, expected.allocated) << "line " << line;
  EXPECT_EQ(stat.freed, expected.freed) << "line " << line;
}
#define EXPECT_STAT(stat, ...) expect(stat, Stat{__VA_ARGS__}, __LINE__)

// What PyTorch's own allocator would say of these tensors, but for what it keeps reserved.
TEST(DeviceStatistics, AreThoseOfPyTorchForTheSameTensors) {
  DeviceStatistics statistics;
  statistics.born(1);         // 512 bytes
  statistics.born(1500);      // 1,536
  statistics.born(kMiB);      // the largest small one
  statistics.born(kMiB + 1);  // 1 MiB and 512 bytes, large
  statistics.born(5 * kMiB);
  statistics.died(5 * kMiB);
  statistics.died(1);

  const auto stats = statistics.stats();
  EXPECT_STAT(small(stats.allocation), 2, 3, 3, 1);
  EXPECT_STAT(large(stats.allocation), 1, 2, 2, 1);
  EXPECT_STAT(all(stats.allocation), 3, 5, 5, 2);
  EXPECT_STAT(all(stats.active), 3, 5, 5, 2);
  EXPECT_STAT(small(stats.allocated_bytes), 1050112, 1050624, 1050624, 512);
  EXPECT_STAT(large(stats.allocated_bytes), 1049088, 6291968, 6291968, 5242880);
  EXPECT_STAT(all(stats.allocated_bytes), 2099200, 7342592, 7342592, 5243392);
  EXPECT_STAT(all(stats.active_bytes), 2099200, 7342592, 7342592, 5243392);
  EXPECT_STAT(all(stats.requested_bytes), 2098653, 7341534, 7341534, 5242881);
  EXPECT_STAT(all(stats.inactive_split), 0, 0, 0, 0);
  EXPECT_STAT(all(stats.inactive_split_bytes), 0, 0, 0, 0);
  EXPECT_EQ(stats.num_alloc_retries, 0);
  EXPECT_EQ(stats.num_ooms, 0);
}

TEST(DeviceStatistics, ReserveWholeSegmentsOfWhatAPoolHolds) {
  DeviceStatistics statistics;
  for (int i = 0; i < 3; ++i) statistics.born(kMiB);
  EXPECT_STAT(small(statistics.stats().reserved_bytes), 4 << 20, 4 << 20, 4 << 20, 0);
  EXPECT_STAT(small(statistics.stats().segment), 2, 2, 2, 0);
  statistics.born(10 * kMiB + 1);
  EXPECT_STAT(large(statistics.stats().reserved_bytes), 12 << 20, 12 << 20, 12 << 20, 0);
  EXPECT_STAT(all(statistics.stats().segment), 8, 8, 8, 0);
  for (int i = 0; i < 3; ++i) statistics.died(kMiB);
  EXPECT_STAT(small(statistics.stats().reserved_bytes), 0, 4 << 20, 4 << 20, 4 << 20);
  EXPECT_STAT(all(statistics.stats().reserved_bytes), 12 << 20, 16 << 20, 16 << 20, 4 << 20);
  EXPECT_EQ(statistics.held().allocated, 10 * kMiB + 512);
  EXPECT_EQ(statistics.held().reserved, 12 * kMiB);
}

TEST(DeviceStatistics, ForgetPeaksAndSumsWhenTheyAreReset) {
  DeviceStatistics statistics;
  statistics.born(4 * kMiB);
  statistics.born(2 * kMiB);
  statistics.died(4 * kMiB);
  statistics.out_of_memory();
  statistics.reset_peaks();
  EXPECT_STAT(all(statistics.stats().allocated_bytes), 2 << 20, 2 << 20, 6 << 20, 4 << 20);
  EXPECT_EQ(statistics.stats().num_ooms, 1);
  statistics.reset_accumulated();
  EXPECT_STAT(all(statistics.stats().allocated_bytes), 2 << 20, 2 << 20, 0, 0);
  EXPECT_EQ(statistics.stats().num_ooms, 0);
  statistics.died(2 * kMiB);
  EXPECT_STAT(all(statistics.stats().allocated_bytes), 0, 2 << 20, 0, 2 << 20);
}

TEST(DeviceStatistics, CountWhatAllThreadsDo) {
  DeviceStatistics statistics;
  std::vector<std::thread> threads;
  for (std::size_t bytes = 1; bytes <= 4 * kMiB; bytes *= 16)
    threads.emplace_back([&, bytes] {
      for (int i = 0; i < 1000; ++i) statistics.born(bytes);
      for (int i = 0; i < 1000; ++i) statistics.died(bytes);
    });
  const auto count = static_cast<std::int64_t>(threads.size()) * 1000;
  for (std::thread& thread : threads) thread.join();
  const Stat made = all(statistics.stats().allocation);
  EXPECT_EQ(made.current, 0);
  EXPECT_EQ(made.allocated, count);
  EXPECT_EQ(made.freed, count);
  EXPECT_EQ(statistics.held().reserved, 0u);
}

TEST(DeviceStatistics, AreAddedToThoseOfAnotherAllocator) {
  DeviceStatistics ours, theirs;
  ours.born(100);
  ours.out_of_memory();
  theirs.born(2 * kMiB);
  theirs.died(2 * kMiB);
  theirs.born(300);
  auto sum = theirs.stats();
  sum.num_alloc_retries = 3;
  sum.max_split_size = 77;
  sum.oversize_allocations = Stat{1, 2, 3, 4};
  add_statistics(sum, ours.stats());
  EXPECT_STAT(all(sum.allocated_bytes), 1024, (2 << 20) + 512, (2 << 20) + 1024, 2 << 20);
  EXPECT_STAT(all(sum.requested_bytes), 400, (2 << 20) + 100, (2 << 20) + 400, 2 << 20);
  EXPECT_STAT(sum.oversize_allocations, 1, 2, 3, 4);
  EXPECT_EQ(sum.num_alloc_retries, 3);
  EXPECT_EQ(sum.num_ooms, 1);
  EXPECT_EQ(sum.max_split_size, 77);
}

}  // namespace
}  // namespace spillway
