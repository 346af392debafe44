#include <atomic>

#include "machine_rig.h"

namespace spillway {
namespace {

// A block that has come back with its copy kept.
void leave_and_come_clean(Rig& rig) {
  rig.tensor_in_block_0(1);
  EXPECT_TRUE(rig.move(1, {{0}, 1}, Tier::device, Tier::ssd));
  EXPECT_TRUE(rig.move(2, {{0}, 1}, Tier::ssd, Tier::device, true));
  EXPECT_TRUE(holds(rig.block(0), kBlock, 1));
}

TEST_P(CpuMachineTest, ACleanBlockLeavesWithoutBeingWritten) {
  Rig rig = CpuMachineTest::rig({});
  leave_and_come_clean(rig);
  EXPECT_EQ(rig.machine->stats().held(Tier::ssd), kBlockBytes);
  EXPECT_TRUE(rig.move(3, {{0}, 1}, Tier::device, Tier::ssd, true));
  EXPECT_EQ(resident_bytes(rig.machine->range()), 0u);
  EXPECT_TRUE(rig.move(4, {{0}, 1}, Tier::ssd, Tier::device));
  EXPECT_TRUE(holds(rig.block(0), kBlock, 1));
  const MachineStats& stats = rig.machine->stats();
  EXPECT_EQ(stats.written(), kBlockBytes);
  EXPECT_EQ(stats.moved(Tier::device, Tier::ssd), kBlockBytes);
  EXPECT_EQ(stats.dropped_clean(), kBlockBytes);
  EXPECT_EQ(stats.unseen_writes(), 0u);
  EXPECT_EQ(stats.held(Tier::ssd), Bytes{});
}

TEST_P(CpuMachineTest, AWriteThatNoKernelToldOfIsFoundWhenTheBlockLeaves) {
  Rig rig = CpuMachineTest::rig({});
  leave_and_come_clean(rig);
  fill(rig.block(0), kBlock, 1);
  rig.block(0)[kBlock / 2] ^= std::byte{1};
  EXPECT_TRUE(rig.move(3, {{0}, 1}, Tier::device, Tier::ssd, true));
  EXPECT_TRUE(rig.move(4, {{0}, 1}, Tier::ssd, Tier::device));
  EXPECT_FALSE(holds(rig.block(0), kBlock, 1));
  rig.block(0)[kBlock / 2] ^= std::byte{1};
  EXPECT_TRUE(holds(rig.block(0), kBlock, 1));
  EXPECT_EQ(rig.machine->stats().unseen_writes(), 1u);
  EXPECT_EQ(rig.machine->stats().dropped_clean(), Bytes{});
  EXPECT_EQ(rig.machine->stats().moved(Tier::device, Tier::ssd), kBlockBytes * 2);
}

// A kernel tells what it writes of what it was given. What it makes it writes without a word.
TEST_P(CpuMachineTest, AWriteToWhatAKernelMakesIsNotUnseen) {
  for (const bool within : {false, true})
    for (const bool in_pieces : {false, true}) {
      Rig rig = CpuMachineTest::rig({});
      rig.tensor_in_block_0(1);
      ASSERT_TRUE(rig.move(1, {{0}, 1}, Tier::device, Tier::ssd));
      if (within) rig.machine->inbox().kernel_ready({.launch = {{0}, 1}, .kernel = kNoKernel, .accesses = {}});
      rig.machine->inbox().allocated({1}, {{0}, 1});
      if (!within) rig.machine->inbox().kernel_ready({.launch = {{0}, 1}, .kernel = kNoKernel, .accesses = {}});
      rig.machine->inbox().kernel_done({{1}}, true);  // Another stream's, which rings.
      while (!std::holds_alternative<KernelDone>(rig.next())) {
      }
      if (in_pieces) rig.ask(Split{{0}});
      const BlockRange blocks = in_pieces ? BlockRange{pieces_of({0}).first, 2} : BlockRange{{0}, 1};
      ASSERT_TRUE(rig.move(2, blocks, Tier::ssd, Tier::device, true));
      fill(rig.block(0), 2 * kPieceBytes.value, 2);
      rig.machine->inbox().kernel_done({{0}, 1}, true);
      EXPECT_TRUE(std::holds_alternative<KernelDone>(rig.next()));
      ASSERT_TRUE(rig.move(3, blocks, Tier::device, Tier::ssd, true));
      EXPECT_EQ(rig.machine->stats().dropped_clean(), Bytes{});
      EXPECT_EQ(rig.machine->stats().unseen_writes(), within ? 0 : blocks.count) << in_pieces;
      ASSERT_TRUE(rig.move(4, blocks, Tier::ssd, Tier::device, true));
      EXPECT_TRUE(holds(rig.block(0), 2 * kPieceBytes.value, 2));
      fill(rig.block(0), 2 * kPieceBytes.value, 3);  // That kernel is over.
      ASSERT_TRUE(rig.move(5, blocks, Tier::device, Tier::ssd, true));
      EXPECT_EQ(rig.machine->stats().unseen_writes(), (within ? 1 : 2) * blocks.count) << in_pieces;
    }
}

TEST_P(CpuMachineTest, WhatIsDroppedIsAsWhatWasStoredLast) {
  Rig rig = CpuMachineTest::rig({});
  leave_and_come_clean(rig);
  std::uint32_t id = 3;
  for (std::uint64_t version : {1, 2, 2, 1, 3, 3}) {
    fill(rig.block(0), kBlock, version);
    EXPECT_TRUE(rig.move(id++, {{0}, 1}, Tier::device, Tier::ssd, true));
    EXPECT_TRUE(rig.move(id++, {{0}, 1}, Tier::ssd, Tier::device, true));
    EXPECT_TRUE(holds(rig.block(0), kBlock, version));
  }
  EXPECT_EQ(rig.machine->stats().dropped_clean(), kBlockBytes * 3);
  EXPECT_EQ(rig.machine->stats().unseen_writes(), 3u);
  EXPECT_EQ(rig.machine->stats().written(), kBlockBytes * 4);
}

TEST_P(CpuMachineTest, AWriteFromAnotherThreadDuringACleanEvictionIsNotLost) {
  Rig rig = CpuMachineTest::rig({});
  leave_and_come_clean(rig);
  std::uint32_t id = 3;
  for (std::uint32_t round = 1; round <= 50; ++round) {
    // Any time from before the block is taken off to after it has been hashed, and any place, before or behind the
    // hash.
    const std::size_t place = (round * 7919 * 64) % kBlock;
    std::atomic<bool> go{false};
    std::thread writer([&] {
      while (!go) {
      }
      for (std::atomic<std::uint32_t> wait = round * round * 40; wait > 0;) --wait;
      rig.block(0)[place] = std::byte(round);
    });
    go = true;
    const bool left = rig.move(id++, {{0}, 1}, Tier::device, Tier::ssd, true);
    if (left) {
      EXPECT_TRUE(rig.move(id++, {{0}, 1}, Tier::ssd, Tier::device, true));
    }
    writer.join();
    EXPECT_EQ(rig.block(0)[place], std::byte(round));
  }
}

TEST_P(CpuMachineTest, ACopyThatIsGivenUpLeavesItsSlot) {
  Rig rig = CpuMachineTest::rig({}, 1);
  leave_and_come_clean(rig);
  rig.ask(Discard{{{0}, 1}, Tier::ssd});
  EXPECT_EQ(rig.machine->stats().held(Tier::ssd), Bytes{});
  rig.ask(Populate{{{1}, 1}});
  fill(rig.block(1), kBlock, 2);
  EXPECT_TRUE(rig.move(4, {{1}, 1}, Tier::device, Tier::ssd));
  EXPECT_TRUE(holds(rig.block(0), kBlock, 1));
}

TEST_P(CpuMachineTest, ACopyGivesItsSlotToWhatHasNoOther) {
  Rig rig = CpuMachineTest::rig({}, 2);
  leave_and_come_clean(rig);
  rig.ask(Populate{{{1}, 2}});
  for (const std::uint32_t index : {1u, 2u}) fill(rig.block(index), kBlock, index + 1);
  EXPECT_TRUE(rig.move(3, {{1}, 2}, Tier::device, Tier::ssd));
  EXPECT_EQ(rig.machine->stats().held(Tier::ssd), kBlockBytes * 2);
  EXPECT_FALSE(rig.move(4, {{0}, 1}, Tier::device, Tier::ssd, true));  // Clean for the executor; and there is no slot.
  EXPECT_TRUE(holds(rig.block(0), kBlock, 1));
  EXPECT_TRUE(rig.move(5, {{1}, 2}, Tier::ssd, Tier::device));
  EXPECT_TRUE(rig.move(6, {{0}, 1}, Tier::device, Tier::ssd, true));
  EXPECT_TRUE(rig.move(7, {{0}, 1}, Tier::ssd, Tier::device));
  for (std::uint32_t index = 0; index < 3; ++index) EXPECT_TRUE(holds(rig.block(index), kBlock, index + 1));
}

TEST_P(CpuMachineTest, OfSeveralCleanBlocksThoseThatHaveChangedAreWritten) {
  bool fails = false;
  Rig rig = CpuMachineTest::rig(
      {.around_io = around<FailingIo>([&](const Transfer& t) { return t.write && fails ? EIO : 0; })});
  rig.ask(Populate{{{0}, 3}});
  for (std::uint32_t index = 0; index < 3; ++index) fill(rig.block(index), kBlock, index);
  EXPECT_TRUE(rig.move(1, {{0}, 3}, Tier::device, Tier::ssd));
  EXPECT_TRUE(rig.move(2, {{0}, 3}, Tier::ssd, Tier::device, true));
  fill(rig.block(1), kBlock, 7);
  EXPECT_TRUE(rig.move(3, {{0}, 3}, Tier::device, Tier::ssd, true));
  EXPECT_EQ(rig.machine->stats().dropped_clean(), kBlockBytes * 2);
  EXPECT_TRUE(rig.move(4, {{0}, 3}, Tier::ssd, Tier::device, true));
  fill(rig.block(1), kBlock, 8);
  fails = true;  // All stay, and all copies are given up.
  EXPECT_FALSE(rig.move(5, {{0}, 3}, Tier::device, Tier::ssd, true));
  EXPECT_EQ(rig.machine->stats().held(Tier::ssd), Bytes{});
  fails = false;
  EXPECT_TRUE(rig.move(6, {{0}, 3}, Tier::device, Tier::ssd));
  EXPECT_TRUE(rig.move(7, {{0}, 3}, Tier::ssd, Tier::device));
  for (std::uint32_t index = 0; index < 3; ++index)
    EXPECT_TRUE(holds(rig.block(index), kBlock, index == 1 ? 8 : index)) << index;
}

}  // namespace
}  // namespace spillway
