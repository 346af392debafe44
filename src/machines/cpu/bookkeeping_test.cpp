#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "machines/cpu/fault_queue.h"
#include "machines/real/doorbell.h"
#include "machines/real/inbox.h"
#include "machines/real/stall_clock.h"
#include "machines/real/streams.h"
#include "machines/real/transfer_meter.h"
#include "machines/real/transfer_queue.h"
#include "machines/real/watched_io.h"

namespace spillway {
namespace {

FaultQueue::Entry fault_at(std::uintptr_t address) {
  return {{reinterpret_cast<std::byte*>(address), 1, false}, Nanos{}};
}

TEST(FaultQueue, KeepsTheOrderAndSaysWhenItTurnedOneAway) {
  auto queue = std::make_unique<FaultQueue>();
  for (std::uintptr_t index = 0; index < FaultQueue::kCapacity; ++index) queue->push(fault_at(index));
  EXPECT_FALSE(queue->take_overflow());
  queue->push(fault_at(99));
  EXPECT_TRUE(queue->take_overflow());
  EXPECT_FALSE(queue->take_overflow());
  for (std::uintptr_t index = 0; index < FaultQueue::kCapacity; ++index)
    EXPECT_EQ(queue->pop()->fault.address, reinterpret_cast<std::byte*>(index));
  EXPECT_FALSE(queue->pop());
}

TEST(FaultQueue, HandsOverBetweenTwoThreads) {
  auto queue = std::make_unique<FaultQueue>();
  constexpr std::uintptr_t kCount = 20'000;
  std::thread pusher([&] {
    for (std::uintptr_t index = 1; index <= kCount;) {
      queue->push(fault_at(index));
      if (!queue->take_overflow()) ++index;
    }
  });
  std::uintptr_t last = 0;
  while (last < kCount)
    if (const auto entry = queue->pop()) {
      const auto seen = reinterpret_cast<std::uintptr_t>(entry->fault.address);
      ASSERT_EQ(seen, last + 1);
      last = seen;
    }
  pusher.join();
}

TEST(Inbox, WakesTheLoopWhenMuchHasPiledUpWhateverTheLastOfItIs) {
  const auto bell = Doorbell::make();
  ASSERT_TRUE(bell);
  Inbox inbox(8, *bell);
  const auto has_rung = [&] {
    pollfd rung{bell->fd(), POLLIN, 0};
    return ::poll(&rung, 1, 0) == 1;
  };
  for (std::uint32_t serial = 1; serial < 4096; ++serial) inbox.kernel_done({{0}, serial});
  EXPECT_FALSE(has_rung());
  inbox.adopted(nullptr);
  EXPECT_TRUE(has_rung());
}

TEST(Inbox, CountsAnAllocationBeforeItIsRead) {
  auto bell = Doorbell::make();
  ASSERT_TRUE(bell);
  Inbox inbox(8, *bell);
  inbox.allocated({3}, {{2}, 2});
  EXPECT_EQ(inbox.allocations({2}), 1u);
  EXPECT_EQ(inbox.allocations({4}), 0u);
  const BlockAccess access{.blocks = {{2}, 1}, .writes = true};
  inbox.kernel_ready({{{0}}, {7}, std::span(&access, 1)});
  Inbox::Batch batch;
  inbox.take(batch);
  ASSERT_EQ(batch.messages.size(), 2u);
  EXPECT_EQ(batch.messages[0].kind, Inbox::Kind::allocated);
  EXPECT_EQ(batch.messages[1].access_count, 1u);
  EXPECT_TRUE(batch.accesses[batch.messages[1].first_access].writes);
  inbox.take(batch);
  EXPECT_TRUE(batch.messages.empty());
}

TEST(Streams, EachThreadHasItsOwnWhicheverWayItIsAsked) {
  Streams streams, others;
  const StreamId mine = streams.of_this_thread();
  EXPECT_EQ(streams.of_this_thread(), mine);
  EXPECT_EQ(streams.of(::gettid()), mine);
  const StreamId unknown = streams.of(1);
  EXPECT_NE(unknown, mine);
  EXPECT_EQ(streams.of(1), unknown);
  std::thread([&] {
    const StreamId theirs = streams.of_this_thread();
    EXPECT_NE(theirs, mine);
    EXPECT_NE(theirs, unknown);
  }).join();
  EXPECT_EQ(others.of_this_thread(), StreamId{0});
}

TEST(StallClock, CountsTimeInWhichAnyThreadWaitsOnce) {
  StallClock clock;
  clock.begin({1}, {0}, Nanos{100});
  clock.begin({2}, {1}, Nanos{150});
  EXPECT_EQ(clock.total(Nanos{180}), Nanos{80});
  clock.end({1}, Nanos{200});
  EXPECT_EQ(clock.total(Nanos{250}), Nanos{150});
  clock.end({2}, Nanos{400});
  clock.end({2}, Nanos{500});
  EXPECT_EQ(clock.total(Nanos{900}), Nanos{300});
  clock.begin({3}, {0}, Nanos{1000});
  clock.begin({3}, {0}, Nanos{1100});  // The same fault, told again.
  clock.end({3}, Nanos{1200});
  EXPECT_EQ(clock.total(Nanos{1200}), Nanos{500});
  clock.begin(Nanos{2000});  // One thread for its kernel, one for a block.
  clock.begin({4}, {1}, Nanos{2100});
  clock.end(Nanos{2200});
  EXPECT_EQ(clock.total(Nanos{2200}), Nanos{700});
  clock.end({4}, Nanos{2300});
  clock.begin({5}, {1}, Nanos{2250});  // Told late.
  clock.end({5}, Nanos{2400});
  EXPECT_EQ(clock.total(Nanos{2500}), Nanos{900});
}

TEST(TransferMeter, CountsTheTimeInWhichTheDiskHasWork) {
  TransferMeter meter;
  Nanos at{1'000'000'000};
  const auto four_at_once = [&] {  // In 8 ms, and then nothing for a while.
    for (std::size_t under_way = 1; under_way <= 4; ++under_way) meter.note(under_way, {}, at);
    for (std::size_t under_way = 4; under_way-- > 0;) meter.note(under_way, 2_MiB, at += Nanos{2'000'000});
    at += Nanos{50'000'000};
  };
  for (int times = 0; times < 31; ++times) four_at_once();
  EXPECT_EQ(meter.rate(), std::nullopt);  // Too little to tell.
  four_at_once();
  EXPECT_EQ(meter.rate(), std::optional(BytesPerSecond{(2_MiB).value * 500}));
}

TEST(TransferMeter, TransfersOneByOneSayNothingOfTheDisk) {
  TransferMeter meter;
  Nanos at{1'000'000'000};
  for (int block = 0; block < 1'000; ++block) {
    meter.note(1, {}, at);
    meter.note(0, 2_MiB, at += Nanos{20'000'000});
  }
  EXPECT_EQ(meter.rate(), std::nullopt);
}

TEST(TransferMeter, FollowsADiskThatHasBecomeSlower) {
  TransferMeter meter;
  Nanos at{0};
  meter.note(2, {}, at);
  for (const std::uint64_t millis : {1u, 4u})
    for (int block = 0; block < 8'000; ++block) meter.note(2, 2_MiB, at += Nanos{millis * 1'000'000});
  EXPECT_LT(*meter.rate(), BytesPerSecond{(2_MiB).value * 270});
}

TEST(TransferMeter, TimeInWhichTheProcessWasStoppedSaysNothingOfTheDisk) {
  TransferMeter meter;
  Nanos at{0};
  const auto two_at_once = [&] {
    meter.note(2, {}, at);
    meter.note(1, 2_MiB, at += Nanos{2'000'000});
    meter.note(0, 2_MiB, at += Nanos{2'000'000});
  };
  for (int times = 0; times < 100; ++times) two_at_once();
  const auto before = meter.rate();
  ASSERT_TRUE(before);
  meter.note(2, {}, at);
  meter.note(1, 2_MiB, at += Nanos{3'600'000'000'000});
  meter.note(0, 2_MiB, at += Nanos{2'000'000});
  two_at_once();
  EXPECT_NEAR(static_cast<double>(meter.rate()->value), static_cast<double>(before->value), 1e3);
}

TEST(UnderWay, UrgentTransfersDoNotKeepPlannedOnesFromStarting) {
  UnderWay under_way;
  for (int transfer = 0; transfer < 16; ++transfer) {
    ASSERT_TRUE(under_way.may_start(Urgency::need)) << transfer;
    under_way.starts(Urgency::need);
  }
  EXPECT_FALSE(under_way.may_start(Urgency::fault));
  for (int transfer = 0; transfer < 4; ++transfer) {
    ASSERT_TRUE(under_way.may_start(Urgency::plan)) << transfer;
    under_way.starts(Urgency::plan);
  }
  EXPECT_FALSE(under_way.may_start(Urgency::plan));
  under_way.ends(Urgency::plan);
  EXPECT_TRUE(under_way.may_start(Urgency::plan));
  EXPECT_FALSE(under_way.may_start(Urgency::need));
  EXPECT_EQ(under_way.count(), 19u);
}

TEST(TransferQueue, TheMostUrgentComesFirstAndEqualOnesInOrder) {
  TransferQueue queue;
  queue.push({1}, Urgency::plan);
  queue.push({2}, Urgency::fault);
  queue.push({3}, Urgency::fault);
  EXPECT_EQ(queue.front(), BlockId{2});
  EXPECT_EQ(queue.urgency(), Urgency::fault);
  queue.pop();
  EXPECT_EQ(queue.erase({3}), 1u);
  EXPECT_EQ(queue.erase({3}), 0u);
  EXPECT_EQ(queue.front(), BlockId{1});
  EXPECT_EQ(queue.urgency(), Urgency::plan);
  queue.pop();
  EXPECT_TRUE(queue.empty());
}

// Ends what it is told to.
struct FakeIo final : BlockIo {
  void start(const Transfer&) override {}
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds>) override {
    ended.insert(ended.end(), ends.begin(), ends.end());
    return {};
  }
  std::vector<Completion> ends;
};

std::vector<std::uint64_t> all_of(const DiskWaits& waits) {
  std::vector<std::uint64_t> all;
  for (const auto& slot : waits)
    if (const std::uint64_t wait = slot) all.push_back(wait);
  return all;
}

TEST(WatchedIo, WaitsForTheOldestTransfer) {
  DiskWaits waits{};
  auto fake = std::make_unique<FakeIo>();
  FakeIo& io = *fake;
  WatchedIo watched(std::move(fake), waits);
  const std::uint64_t before = disk_wait(WaitsFor::block_write, ::gettid(), now());
  watched.start({.id = 1, .write = true});
  const auto first = all_of(waits);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(what_of(first[0]), WaitsFor::block_write);
  EXPECT_EQ(thread_of(first[0]), ::gettid());
  EXPECT_GE(first[0], before);
  while (disk_wait(WaitsFor::block_write, ::gettid(), now()) == first[0]) {  // Another wait would be another word.
  }
  watched.start({.id = 2});
  watched.start({.id = 3, .write = true});
  EXPECT_EQ(all_of(waits), first);
  std::vector<Completion> ended;
  io.ends = {{3, 0}};
  ASSERT_TRUE(watched.wait(ended, {}));
  EXPECT_EQ(all_of(waits), first);
  io.ends = {{1, EIO}};
  ASSERT_TRUE(watched.wait(ended, {}));
  ASSERT_EQ(all_of(waits).size(), 1u);
  EXPECT_EQ(what_of(all_of(waits)[0]), WaitsFor::block_read);
  io.ends = {{2, 0}};
  ASSERT_TRUE(watched.wait(ended, {}));
  EXPECT_TRUE(all_of(waits).empty());
  EXPECT_EQ(ended.size(), 3u);
}

TEST(DiskWait, IsAWordThatSaysWhoWaitsForWhatSinceWhen) {
  std::set<std::uint64_t> words{0};
  for (const WaitsFor what :
       {WaitsFor::block_read, WaitsFor::block_write, WaitsFor::space, WaitsFor::record, WaitsFor::journal})
    for (const std::int64_t thread : {1, 4194303})  // Linux has none with a larger number.
      for (const std::uint64_t seconds : {0, 1, 500'000'000}) {
        const std::uint64_t wait = disk_wait(what, thread, Nanos{seconds * 1'000'000'000});
        EXPECT_EQ(what_of(wait), what);
        EXPECT_EQ(thread_of(wait), thread);
        EXPECT_TRUE(words.insert(wait).second);
      }
  const DiskWait unwatched(nullptr, WaitsFor::space);
}

TEST(DiskWait, EachOfManyThreadsHasASlotOfItsOwn) {
  DiskWaits waits{};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        for (int times = 0; times < 20'000; ++times) {
          const DiskWait one(&waits, WaitsFor::space), another(&waits, WaitsFor::record);
          EXPECT_EQ(std::ranges::count(all_of(waits), ::gettid(), thread_of), 2);
        }
      });
  }
  EXPECT_TRUE(all_of(waits).empty());
}

TEST(Doorbell, WhoRingsFindsOutThatTheScriptHasClosedIt) {
  std::string lost;
  const auto bell = Doorbell::make([&](std::string_view why) { lost = why; });
  ASSERT_TRUE(bell);
  bell->ring();
  EXPECT_FALSE(bell->is_lost());
  EXPECT_EQ(lost, "");
  ::close(bell->fd());
  EXPECT_TRUE(bell->is_lost());
  bell->ring();
  EXPECT_EQ(lost, kDescriptorsClosed);
}

}  // namespace
}  // namespace spillway
