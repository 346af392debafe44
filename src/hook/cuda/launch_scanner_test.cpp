#include "hook/cuda/launch_scanner.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace spillway {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 40, kBytes = 4096;

std::atomic<int> asked{0};
std::atomic<bool> knows{true};

KernelLayout two_pointers(CUfunc_st*) {
  ++asked;
  return {.parameters = {{0, 8}, {8, 8}}, .is_known = knows, .tensor_lists = {}};
}

CUfunc_st* function(std::uint64_t number) { return reinterpret_cast<CUfunc_st*>(number); }

class LaunchScannerTest : public testing::Test {
 protected:
  LaunchScannerTest() {
    asked = 0;
    knows = true;
  }
  bool scan(CUfunc_st* kernel, std::uint64_t first, std::uint64_t second) {
    std::array<void*, 2> each{&first, &second};
    touches.clear();
    return scanner.scan_kernel(kernel, {.each = each.data(), .packed = {}}, touches);
  }
  LaunchScanner scanner{two_pointers};
  LaunchScanner::Touches touches;
};

TEST_F(LaunchScannerTest, PointersIntoRangesAreTouchesWithTheirRange) {
  ASSERT_TRUE(scanner.add({.begin = kBase, .bytes = kBytes, .id = 5}));
  EXPECT_TRUE(scan(function(1), kBase + 100, 0));
  ASSERT_EQ(touches.size(), 1u);
  EXPECT_EQ(touches[0].address, kBase + 100);
  EXPECT_EQ(touches[0].range, 5u);
  EXPECT_EQ(touches[0].access, CudaAccess::read_or_write);
  EXPECT_TRUE(scanner.remove(kBase));
  EXPECT_TRUE(scan(function(1), kBase + 100, 0));
  EXPECT_TRUE(touches.empty()) << "stale";
}

TEST_F(LaunchScannerTest, ALayoutIsAskedForOnceUntilFunctionsAreUnloaded) {
  scan(function(1), 0, 0);
  scan(function(1), 0, 0);
  scan(function(2), 0, 0);
  EXPECT_EQ(asked, 2);
  scanner.forget_layouts();
  scan(function(1), 0, 0);
  EXPECT_EQ(asked, 3);
}

TEST_F(LaunchScannerTest, AnUnknownLayoutIsNotCompleteAndAskedForAgain) {
  knows = false;
  EXPECT_FALSE(scan(function(1), 0, 0));
  EXPECT_FALSE(scan(function(1), 0, 0));
  EXPECT_EQ(asked, 2);
  knows = true;
  EXPECT_TRUE(scan(function(1), 0, 0));
}

TEST_F(LaunchScannerTest, BytesTouchAllRangesThatTheyReach) {
  for (const std::uint64_t i : {0, 1, 2})
    ASSERT_TRUE(scanner.add({.begin = kBase + i * kBytes, .bytes = kBytes / 2, .id = i}));
  scanner.scan_bytes({.address = kBase + 10, .bytes = kBytes + 1}, CudaAccess::write, touches);
  ASSERT_EQ(touches.size(), 2u);
  EXPECT_EQ(touches[0].address, kBase + 10);
  EXPECT_EQ(touches[1].address, kBase + kBytes);
  EXPECT_EQ(touches[1].access, CudaAccess::write);
  touches.clear();
  scanner.scan_bytes({.address = kBase, .bytes = 0}, CudaAccess::read, touches);
  scanner.scan_bytes({.address = kBase + kBytes / 2, .bytes = kBytes / 2}, CudaAccess::read, touches);
  EXPECT_TRUE(touches.empty());
}

// Each thread's own range is there whenever it launches, whatever the others add, remove and unload.
TEST_F(LaunchScannerTest, ManyThreadsLaunchWhileRangesComeAndGo) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      LaunchScanner::Touches mine;
      for (std::uint64_t i = 0; i < 300; ++i) {
        const std::uint64_t begin = kBase + thread * 64 * kBytes + i % 60 * kBytes;
        if (!scanner.add({.begin = begin, .bytes = kBytes, .id = begin})) ++wrong;
        std::uint64_t first = begin + 8, second = begin + kBytes;
        std::array<void*, 2> each{&first, &second};
        mine.clear();
        if (!scanner.scan_kernel(function(i % 7 + 1), {.each = each.data(), .packed = {}}, mine)) ++wrong;
        if (mine.size() != 1 || mine[0].range != begin) ++wrong;
        if (i % 50 == 0) scanner.forget_layouts();
        if (!scanner.remove(begin)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

bool lets_another_reader_in(FairSharedMutex& mutex) {
  if (!mutex.try_lock_shared()) return false;
  mutex.unlock_shared();
  return true;
}

TEST(FairSharedMutex, NoReaderComesBeforeAWriterWhoWaits) {
  FairSharedMutex mutex;
  mutex.lock_shared();
  std::thread writer([&] {
    mutex.lock();
    mutex.unlock();
  });
  bool is_let_in = true;
  for (int looks = 0; is_let_in && looks < 10'000'000; ++looks) {  // until the writer has come to wait
    is_let_in = lets_another_reader_in(mutex);
    std::this_thread::yield();
  }
  EXPECT_FALSE(is_let_in);
  mutex.unlock_shared();
  writer.join();
}

}  // namespace
}  // namespace spillway
