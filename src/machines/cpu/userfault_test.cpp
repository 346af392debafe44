#include "machines/cpu/userfault.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "machines/cpu/choose_eviction.h"
#include "machines/cpu/fault_queue.h"
#include "machines/cpu/fault_reader.h"
#include "machines/real/doorbell.h"
#include "machines/real/memory_range.h"

namespace spillway {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t kBlock = kBlockBytes.value;

class UserfaultTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Userfault::open();
    if (!opened) GTEST_SKIP() << opened.error().message;
    userfault_.emplace(std::move(*opened));
    auto range = MemoryRange::reserve(4);
    auto staging = MemoryRange::reserve(4);
    ASSERT_TRUE(range && staging);
    range_.emplace(std::move(*range));
    staging_.emplace(std::move(*staging));
    ASSERT_TRUE(userfault_->watch(range_->begin(), range_->bytes()));
    ASSERT_TRUE(userfault_->admit(staging_->begin(), staging_->bytes()));
  }
  Userfault::Fault next_fault() {
    std::array<Userfault::Fault, 1> fault;
    pollfd source{userfault_->fd(), POLLIN, 0};
    do ::poll(&source, 1, -1);
    while (userfault_->read(fault) == 0);
    return fault[0];
  }
  std::optional<Userfault> userfault_;
  std::optional<MemoryRange> range_, staging_;
};

TEST_F(UserfaultTest, AFaultNamesItsThreadAndACopyServesIt) {
  pid_t toucher_id = 0;
  std::byte seen{};
  std::thread toucher([&] {
    toucher_id = ::gettid();
    seen = range_->block(1)[5000];
  });
  const Userfault::Fault fault = next_fault();
  EXPECT_EQ(range_->index_of(fault.address), 1u);
  EXPECT_FALSE(fault.write_protected);
  std::memset(staging_->begin(), 9, kBlock);
  EXPECT_EQ(userfault_->copy(range_->block(1), staging_->begin(), kBlock), 0);
  EXPECT_EQ(userfault_->wake(range_->block(1), kBlock), 0);
  toucher.join();
  EXPECT_EQ(fault.thread, toucher_id);
  EXPECT_EQ(seen, std::byte{9});
}

// Two threads use the byte, and only the kernel orders them. ThreadSanitizer must not look: it would report a race, and
// with atomics it holds a lock of its own while the thread is stopped in the fault.
__attribute__((no_sanitize("thread"))) std::byte load(const volatile std::byte* from) { return *from; }
__attribute__((no_sanitize("thread"))) void store(volatile std::byte* to, std::byte value) { *to = value; }

// See Note [Pages that were moved and not counted]: some of a few thousand moves meet it where the kernel has that
// fault.
TEST_F(UserfaultTest, PagesThatAThreadReadsMeanwhileAreMovedAndNotLost) {
  if (!userfault_->can_move()) GTEST_SKIP() << "this kernel cannot move pages";
  std::byte* const block = range_->block(1);
  std::byte* const slot = staging_->block(1);
  for (std::byte* memory : {block, slot}) ASSERT_EQ(::madvise(memory, kBlock, MADV_NOHUGEPAGE), 0);
  std::vector<std::byte> bytes(kBlock);
  for (std::size_t at = 0; at < kBlock; ++at) bytes[at] = static_cast<std::byte>(at / kPageBytes + 1);
  ASSERT_EQ(userfault_->copy(block, bytes.data(), kBlock), 0);
  std::atomic<bool> ends{false};
  const auto read_pages = [&] {
    for (std::size_t page = 0; !ends; page = (page + 77) % (kBlock / kPageBytes)) load(block + page * kPageBytes);
  };
  std::jthread one(read_pages), other(read_pages);
  constexpr int kColdAdvice = 20;  // MADV_COLD: a read changes the page's entry again
  for (int round = 0; round < 5000; ++round) {
    ::madvise(block, kBlock, kColdAdvice);
    EXPECT_EQ(userfault_->move(slot, block, kBlock, 10s), 0) << round;
    EXPECT_EQ(std::memcmp(slot, bytes.data(), kBlock), 0) << round;
    EXPECT_EQ(userfault_->move(block, slot, kBlock, 10s), 0) << round;
    std::array<Userfault::Fault, 16> faults;
    while (userfault_->read(faults) > 0) continue;
    userfault_->wake(block, kBlock);
    if (HasFailure()) break;
  }
  ends = true;
  for (std::size_t at = 0; at < kBlock; at += kPageBytes) userfault_->zero(block + at, kPageBytes);  // Nobody waits on.
}

TEST_F(UserfaultTest, AProtectedPageLetsReadersPassAndHoldsWriters) {
  std::memset(staging_->begin(), 1, kBlock);
  ASSERT_EQ(userfault_->copy(range_->block(0), staging_->begin(), kBlock), 0);
  ASSERT_EQ(userfault_->protect(range_->block(0), kBlock, true), 0);
  std::byte* const byte = &range_->block(0)[77];
  EXPECT_EQ(load(byte), std::byte{1});
  std::thread writer([&] { store(byte, std::byte{2}); });
  EXPECT_TRUE(next_fault().write_protected);
  EXPECT_EQ(load(byte), std::byte{1});
  ASSERT_EQ(userfault_->protect(range_->block(0), kBlock, false), 0);
  ASSERT_EQ(userfault_->wake(range_->block(0), kBlock), 0);
  writer.join();
  EXPECT_EQ(load(byte), std::byte{2});
}

TEST_F(UserfaultTest, AMoveTakesThePageAwayAndBringsItBack) {
  if (!userfault_->can_move()) GTEST_SKIP() << "this kernel has no UFFDIO_MOVE (Linux 6.8)";
  std::memset(staging_->block(0), 3, kBlock);
  ASSERT_EQ(userfault_->move(range_->block(2), staging_->block(0), kBlock, 1ms), 0);
  EXPECT_EQ(range_->block(2)[kBlock - 1], std::byte{3});
  ASSERT_EQ(userfault_->move(staging_->block(3), range_->block(2), kBlock, 1ms), 0);
  std::byte seen{};
  std::thread toucher([&] { seen = range_->block(2)[0]; });
  EXPECT_EQ(range_->index_of(next_fault().address), 2u);
  ASSERT_EQ(userfault_->move(range_->block(2), staging_->block(3), kBlock, 1ms), 0);
  ASSERT_EQ(userfault_->wake(range_->block(2), kBlock), 0);
  toucher.join();
  EXPECT_EQ(seen, std::byte{3});
}

TEST_F(UserfaultTest, AMoveOntoPagesThatAreThereIsRefusedAndChangesNothing) {
  if (!userfault_->can_move()) GTEST_SKIP() << "this kernel has no UFFDIO_MOVE (Linux 6.8)";
  std::memset(staging_->block(0), 1, 2 * kBlock);
  EXPECT_EQ(userfault_->move(staging_->block(1), staging_->block(0), kBlock, 100us), EEXIST);
  EXPECT_EQ(staging_->block(0)[0], std::byte{1});
}

TEST_F(UserfaultTest, WhatTheScriptHasDroppedMovesAsZeroes) {
  if (!userfault_->can_move()) GTEST_SKIP() << "this kernel has no UFFDIO_MOVE (Linux 6.8)";
  std::memset(staging_->block(0), 1, kBlock);
  ASSERT_EQ(userfault_->move(range_->block(0), staging_->block(0), kBlock, 1ms), 0);
  ASSERT_EQ(::madvise(range_->block(0) + 8192, 4096, MADV_DONTNEED), 0);
  ASSERT_EQ(userfault_->move(staging_->block(1), range_->block(0), kBlock, 1ms), 0);
  EXPECT_EQ(staging_->block(1)[8191], std::byte{1});
  EXPECT_EQ(staging_->block(1)[8192], std::byte{0});
  EXPECT_EQ(staging_->block(1)[8192 + 4096], std::byte{1});
}

TEST_F(UserfaultTest, WhoeverWaitsFaultsAgainWhenWoken) {
  std::thread toucher([&] { range_->block(3)[0] = std::byte{1}; });
  next_fault();
  EXPECT_EQ(userfault_->wake(range_->begin(), range_->bytes()), 0);
  EXPECT_EQ(range_->index_of(next_fault().address), 3u);
  EXPECT_EQ(userfault_->zero(range_->block(3), 4096), 0);
  toucher.join();
}

// As in an eviction that copies: the script drops a page, the run loop meets it, and then the script writes to it.
TEST_F(UserfaultTest, WhatTheRunLoopFindsDroppedHoldsWriters) {
  FaultQueue queue;
  auto bell = Doorbell::make();
  ASSERT_TRUE(bell);
  auto reader = FaultReader::start(*userfault_, queue, *bell, [](std::string_view why) { FAIL() << why; });
  ASSERT_TRUE(reader);
  std::byte* const byte = &range_->block(1)[4096 + 77];
  std::thread run_loop([&] {
    (*reader)->run_loop_is(::gettid());
    EXPECT_EQ(load(byte), std::byte{});
    (*reader)->run_loop_is(0);
  });
  run_loop.join();
  EXPECT_FALSE(queue.pop());
  std::atomic<bool> wrote{false};
  std::thread writer([&] {
    store(byte, std::byte{2});
    wrote = true;
    bell->ring();
  });
  pollfd rung{bell->fd(), POLLIN, 0};
  while (::poll(&rung, 1, -1) != 1) continue;
  EXPECT_FALSE(wrote);
  const auto held = queue.pop();
  EXPECT_TRUE(held && held->fault.write_protected && held->fault.address == page_of(byte));
  EXPECT_EQ(userfault_->protect(page_of(byte), kPageBytes, false), 0);
  EXPECT_EQ(userfault_->wake(page_of(byte), kPageBytes), 0);
  writer.join();
  EXPECT_EQ(load(byte), std::byte{2});
}

TEST(EvictionMethod, TheCopyingPathIsAlwaysThereAndAutomaticPrefersToMove) {
  auto opened = Userfault::open();
  if (!opened) GTEST_SKIP() << opened.error().message;
  EXPECT_EQ(choose(EvictionMethod::copy), EvictionMethod::copy);
  const auto automatic = choose(EvictionMethod::automatic);
  ASSERT_TRUE(automatic);
  EXPECT_EQ(*automatic, opened->can_move() ? EvictionMethod::move : EvictionMethod::copy);
}

}  // namespace
}  // namespace spillway
