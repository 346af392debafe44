#include "hook/torch/disk_work.h"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace spillway {
namespace {

TEST(DiskWork, IsDoneInTheOrderInWhichItWasLeft) {
  DiskWork work;
  EXPECT_TRUE(work.is_done());
  std::string done;
  for (const char one : {'a', 'b', 'c'}) work.leave([&done, one] { done += one; });
  EXPECT_FALSE(work.is_done());
  EXPECT_EQ(done, "");
  work.go_on();
  EXPECT_EQ(done, "abc");
  EXPECT_TRUE(work.is_done());
}

// A disk that does not answer until it is told to, and the thread that waits for it.
struct StuckDisk {
  explicit StuckDisk(DiskWork& work) {
    work.leave([this] {
      reached.set_value();
      answer.get_future().wait();
    });
    waiting = std::jthread([&work] { work.go_on(); });
    reached.get_future().wait();
  }
  std::promise<void> reached, answer;
  std::jthread waiting;
};

TEST(DiskWork, AnotherThreadLeavesItsOwnToTheOneThatWaitsForTheDisk) {
  DiskWork work;
  std::thread::id done_by;
  std::thread::id waits;
  {
    StuckDisk disk(work);
    waits = disk.waiting.get_id();
    work.leave([&] { done_by = std::this_thread::get_id(); });
    work.go_on();  // returns
    EXPECT_FALSE(work.is_done());
    disk.answer.set_value();
  }
  EXPECT_TRUE(work.is_done());
  EXPECT_EQ(done_by, waits);
}

TEST(DiskWork, WhoFinishesWaitsForTheOthers) {
  DiskWork work;
  StuckDisk disk(work);
  bool done = false;
  work.leave([&] { done = true; });
  std::jthread answers([&] { disk.answer.set_value(); });
  work.finish();
  EXPECT_TRUE(done && work.is_done());
}

TEST(DiskWork, OneThatFailsForWantOfMemoryKeepsNobodyFromTheOthers) {
  DiskWork work;
  bool done = false;
  work.leave([] { throw std::bad_alloc(); });
  work.leave([&] { done = true; });
  EXPECT_THROW(work.go_on(), std::bad_alloc);
  EXPECT_FALSE(done);
  work.finish();
  EXPECT_TRUE(done);
}

TEST(DiskWork, AllOfManyThreadsIsDoneOneAtATime) {
  static constexpr int kThreads = 4, kEach = 200;
  DiskWork work;
  std::vector<int> done;  // guarded by nothing but that
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kEach; ++i) {
          work.leave([&done, i, thread] { done.push_back(thread * kEach + i); });
          work.go_on();
        }
      });
  }
  EXPECT_TRUE(work.is_done());
  ASSERT_EQ(done.size(), static_cast<std::size_t>(kThreads * kEach));
  std::vector<int> next(kThreads);
  for (const int one : done) EXPECT_EQ(one % kEach, next[static_cast<std::size_t>(one / kEach)]++);
}

}  // namespace
}  // namespace spillway
