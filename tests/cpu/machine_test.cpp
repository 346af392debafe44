#include "machines/cpu/cpu_machine.h"

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "machine_rig.h"

namespace spillway {
namespace {

INSTANTIATE_TEST_SUITE_P(Paths, CpuMachineTest, testing::Values(EvictionMethod::move, EvictionMethod::copy),
                         [](const auto& param_info) { return std::string(to_text(param_info.param)); });

TEST_P(CpuMachineTest, AllThatWasPostedIsToldThoughNothingOfItWakesTheLoop) {
  Rig rig = CpuMachineTest::rig({});
  std::atomic<int> told = 0;
  std::thread loop([&] {
    while (rig.machine->wait()) ++told;
  });
  for (std::uint32_t tensor = 0; tensor < 3; ++tensor) rig.machine->inbox().allocated({tensor}, {{tensor}, 1});
  rig.machine->tell_all(Nanos{20'000'000'000});
  EXPECT_EQ(told, 3);
  rig.machine->stop();
  loop.join();
}

TEST_P(CpuMachineTest, BlocksThatLeaveComeBackWithTheirBytes) {
  Rig rig = CpuMachineTest::rig({});
  rig.ask(Populate{{{0}, 6}});
  for (std::uint32_t index = 0; index < 6; ++index) fill(rig.block(index), kBlock, index);
  EXPECT_TRUE(rig.move(1, {{0}, 6}, Tier::device, Tier::ssd));
  EXPECT_EQ(resident_bytes(rig.machine->range()), 0u);
  EXPECT_TRUE(rig.move(2, {{2}, 4}, Tier::ssd, Tier::device));
  EXPECT_TRUE(rig.move(3, {{0}, 2}, Tier::ssd, Tier::device));
  for (std::uint32_t index = 0; index < 6; ++index) EXPECT_TRUE(holds(rig.block(index), kBlock, index)) << index;
  EXPECT_EQ(rig.machine->stats().moved(Tier::device, Tier::ssd), kBlockBytes * 6);
  EXPECT_EQ(rig.machine->stats().moved(Tier::ssd, Tier::device), kBlockBytes * 6);
}

TEST_P(CpuMachineTest, WhatIsUrgentIsReadBesideAFewOfWhatIsPlanned) {
  std::vector<std::uint32_t> reads;
  Rig rig = CpuMachineTest::rig({.device_frames = 40, .around_io = around<FailingIo>([&](const Transfer& transfer) {
                                                        if (!transfer.write) reads.push_back(transfer.id);
                                                        return 0;
                                                      })});
  rig.ask(Populate{{{0}, 10}});
  for (std::uint32_t index = 0; index < 10; ++index) fill(rig.block(index), kBlock, index);
  ASSERT_TRUE(rig.move(1, {{0}, 9}, Tier::device, Tier::ssd));
  ASSERT_TRUE(rig.move(2, {{9}, 1}, Tier::device, Tier::ssd));
  rig.ask(Move{.id = {3}, .blocks = {{0}, 9}, .from = Tier::ssd, .to = Tier::device, .urgency = Urgency::plan});
  const std::size_t planned = reads.size();
  EXPECT_GT(planned, 1u);
  EXPECT_LE(planned, 4u);
  rig.ask(Move{.id = {4}, .blocks = {{9}, 1}, .from = Tier::ssd, .to = Tier::device, .urgency = Urgency::need});
  ASSERT_EQ(reads.size(), planned + 1);
  EXPECT_EQ(reads.back(), 9u);
  for (int moves = 0; moves < 2; ++moves) EXPECT_TRUE(std::holds_alternative<MoveDone>(rig.answer()));
  for (std::uint32_t index = 0; index < 10; ++index) EXPECT_TRUE(holds(rig.block(index), kBlock, index)) << index;
}

TEST_P(CpuMachineTest, APlannedArrivalKeepsTheDiskAtWork) {
  std::size_t under_way = 0, most = 0, least_before_the_last = SIZE_MAX;
  std::uint32_t read = 0;
  constexpr std::uint32_t kBlocks = 12;
  Rig rig = CpuMachineTest::rig({.device_frames = 70, .around_io = around<OneByOneIo>([&](bool write, bool ends) {
                                                        if (write) return;
                                                        if (ends && read + under_way < kBlocks)
                                                          least_before_the_last =
                                                              std::min(least_before_the_last, under_way);
                                                        ends ? --under_way : ++under_way;
                                                        read += ends;
                                                        most = std::max(most, under_way);
                                                      })});
  rig.ask(Populate{{{0}, kBlocks}});
  ASSERT_TRUE(rig.move(1, {{0}, kBlocks / 2}, Tier::device, Tier::ssd));
  ASSERT_TRUE(rig.move(2, {{kBlocks / 2}, kBlocks / 2}, Tier::device, Tier::ssd));
  const auto planned = [](std::uint32_t id, BlockRange blocks) {
    return Move{.id = {id}, .blocks = blocks, .from = Tier::ssd, .to = Tier::device, .urgency = Urgency::plan};
  };
  const Command both[] = {planned(3, {{0}, kBlocks / 2}), planned(4, {{kBlocks / 2}, kBlocks / 2})};
  rig.machine->submit(both);
  for (int moves = 0; moves < 2; ++moves) EXPECT_TRUE(std::holds_alternative<MoveDone>(rig.answer()));
  EXPECT_LE(most, 4u);
  EXPECT_GT(least_before_the_last, 1u);  // One is under way when another ends.
}

TEST_P(CpuMachineTest, TheSsdsRatesAreKnownOnceEnoughHasMoved) {
  Rig rig = CpuMachineTest::rig({.device_frames = 70});
  constexpr BlockRange kAll{{0}, 48};
  rig.ask(Populate{kAll});
  EXPECT_FALSE(rig.machine->stats().reads.rate());
  for (std::uint32_t times = 0; times < 4; ++times) {
    ASSERT_TRUE(rig.move(2 * times, kAll, Tier::device, Tier::ssd));
    ASSERT_TRUE(rig.move(2 * times + 1, kAll, Tier::ssd, Tier::device));
  }
  EXPECT_TRUE(rig.machine->stats().reads.rate());
  EXPECT_TRUE(rig.machine->stats().writes.rate());
}

// What has failed is not under way any more.
TEST_P(CpuMachineTest, AfterManyFailuresTransfersStillStart) {
  int reads_fail = 0;
  Rig rig = CpuMachineTest::rig(
      {.around_io = around<FailingIo>([&](const Transfer& transfer) { return transfer.write ? 0 : reads_fail; })});
  rig.ask(Populate{{{0}, 2}});
  fill(rig.block(0), 2 * kBlock, 1);
  ASSERT_TRUE(rig.move(1, {{0}, 2}, Tier::device, Tier::ssd));
  std::uint32_t id = 2;
  for (const Urgency urgency : {Urgency::plan, Urgency::need}) {
    const auto back = [&] {
      rig.ask(Move{.id = {id++}, .blocks = {{0}, 2}, .from = Tier::ssd, .to = Tier::device, .urgency = urgency});
      return std::holds_alternative<MoveDone>(rig.answer());
    };
    reads_fail = EIO;
    for (int times = 0; times < 20; ++times) ASSERT_FALSE(back()) << times;
    reads_fail = 0;
    ASSERT_TRUE(back());
    EXPECT_TRUE(holds(rig.block(0), 2 * kBlock, 1));
    ASSERT_TRUE(rig.move(id++, {{0}, 2}, Tier::device, Tier::ssd));
  }
}

TEST_P(CpuMachineTest, AThreadWaitsForTheBlockThatItTouches) {
  Rig rig = CpuMachineTest::rig({});
  std::thread toucher([&] { fill(rig.block(3), kBlock, 7); });
  const Event event = rig.next();
  ASSERT_TRUE(std::holds_alternative<Faulted>(event));
  EXPECT_EQ(std::get<Faulted>(event).blocks, (BlockRange{{3}, 1}));
  rig.ask(Populate{{{3}, 1}});
  toucher.join();
  EXPECT_TRUE(holds(rig.block(3), kBlock, 7));
  EXPECT_EQ(rig.machine->stats().first_touches(), 1u);
  EXPECT_GT(rig.machine->stall().total({}), Nanos{});
}

TEST_P(CpuMachineTest, AWriteDuringAnEvictionIsNotLost) {
  Rig rig = CpuMachineTest::rig({});
  rig.ask(Populate{{{0}, 1}});
  for (std::uint32_t round = 0; round < 50; ++round) {
    fill(rig.block(0), kBlock, round);
    std::atomic<bool> go{false};
    std::thread writer([&] {
      while (!go) {
      }
      rig.block(0)[kBlock - 1] = std::byte(round);
    });
    go = true;
    rig.ask(Move{.id = {round}, .blocks = {{0}, 1}, .from = Tier::device, .to = Tier::ssd, .urgency = Urgency::need});
    bool away = false;
    for (bool answered = false; !answered;) {
      const Event event = rig.next();
      if (std::holds_alternative<Faulted>(event))
        rig.ask(Cancel{{round}});
      else
        answered = true, away = std::holds_alternative<MoveDone>(event);
    }
    if (away) {
      EXPECT_TRUE(rig.move(1000 + round, {{0}, 1}, Tier::ssd, Tier::device));
    }
    writer.join();
    EXPECT_EQ(rig.block(0)[kBlock - 1], std::byte(round));
    rig.block(0)[kBlock - 1] = std::byte{0};
    std::vector<std::byte> wanted(kBlock);
    fill(wanted.data(), kBlock, round);
    wanted.back() = std::byte{0};
    EXPECT_EQ(std::memcmp(rig.block(0), wanted.data(), kBlock), 0);
  }
}

TEST_P(CpuMachineTest, AFailedWriteKeepsTheBlockAndAFailedReadKeepsTheCopy) {
  int writes_fail = EIO, reads_fail = 0;
  Rig rig = CpuMachineTest::rig({.around_io = around<FailingIo>([&](const Transfer& transfer) {
                                   return transfer.write ? writes_fail : reads_fail;
                                 })});
  rig.ask(Populate{{{0}, 2}});
  fill(rig.block(0), 2 * kBlock, 1);
  rig.ask(Move{.id = {1}, .blocks = {{0}, 2}, .from = Tier::device, .to = Tier::ssd, .urgency = Urgency::need});
  const Event failed = rig.answer();
  ASSERT_TRUE(std::holds_alternative<MoveFailed>(failed));
  EXPECT_FALSE(std::get<MoveFailed>(failed).cancelled);
  EXPECT_TRUE(holds(rig.block(0), 2 * kBlock, 1));
  writes_fail = 0;
  EXPECT_TRUE(rig.move(2, {{0}, 2}, Tier::device, Tier::ssd));
  reads_fail = EIO;
  EXPECT_FALSE(rig.move(3, {{0}, 2}, Tier::ssd, Tier::device));
  reads_fail = 0;
  EXPECT_TRUE(rig.move(4, {{0}, 2}, Tier::ssd, Tier::device));
  EXPECT_TRUE(holds(rig.block(0), 2 * kBlock, 1));
  EXPECT_EQ(rig.machine->stats().last_transfer_error(), EIO);
}

TEST_P(CpuMachineTest, PiecesOfABlockComeAndLeaveOneByOneWithTheirBytes) {
  Rig rig = CpuMachineTest::rig({});
  rig.ask(Populate{{{0}, 2}});
  for (std::uint32_t index = 0; index < 2; ++index) fill(rig.block(index), kBlock, index);
  ASSERT_TRUE(rig.move(1, {{0}, 2}, Tier::device, Tier::ssd));
  rig.ask(Split{{1}});
  const std::size_t size = kPieceBytes.value;
  const BlockId first = pieces_of({1}).first;
  const auto piece = [&](std::uint32_t place) { return rig.block(1) + place * size; };
  ASSERT_TRUE(rig.move(2, {{first.value + 3}, 4}, Tier::ssd, Tier::device, true));
  std::vector<std::byte> expected(kBlock);
  fill(expected.data(), kBlock, 1);
  EXPECT_EQ(std::memcmp(piece(3), expected.data() + 3 * size, 4 * size), 0);
  EXPECT_EQ(rig.machine->stats().moved(Tier::ssd, Tier::device), kPieceBytes * 4);
  fill(piece(4), size, 9);
  fill(expected.data() + 4 * size, size, 9);
  rig.machine->check_invariants();
  ASSERT_TRUE(rig.move(3, {{first.value + 3}, 4}, Tier::device, Tier::ssd, true));
  EXPECT_EQ(rig.machine->stats().dropped_clean(), kPieceBytes * 3) << "one of them has been written to";
  EXPECT_EQ(resident_bytes(rig.machine->range()), 0u);
  rig.ask(Join{{1}});
  ASSERT_TRUE(rig.move(4, {{0}, 2}, Tier::ssd, Tier::device));
  EXPECT_EQ(std::memcmp(rig.block(1), expected.data(), kBlock), 0);
  EXPECT_TRUE(holds(rig.block(0), kBlock, 0));
  rig.machine->check_invariants();
}

TEST_P(CpuMachineTest, PiecesTakeAsMuchOfTheDeviceAsTheyHaveBytes) {
  Rig rig = CpuMachineTest::rig({});
  rig.ask(Populate{{{0}, 8}});
  ASSERT_TRUE(rig.move(1, {{0}, 8}, Tier::device, Tier::ssd));
  for (std::uint32_t block = 0; block < 8; ++block) rig.ask(Split{{block}});
  std::uint32_t move = 2;
  for (int turns = 0; turns < 3; ++turns) {  // Frames become pieces, and whole ones again.
    for (std::uint32_t block = 0; block < 8; ++block)
      ASSERT_TRUE(
          rig.move(move++, {{pieces_of({block}).first.value + 5}, kPiecesPerBlock / 2}, Tier::ssd, Tier::device, true));
    EXPECT_LE(resident_bytes(rig.machine->range()) + resident_bytes(rig.machine->staging()), 10 * kBlock);
    for (std::uint32_t block = 0; block < 8; ++block) {
      ASSERT_TRUE(
          rig.move(move++, {{pieces_of({block}).first.value + 5}, kPiecesPerBlock / 2}, Tier::device, Tier::ssd, true));
      rig.ask(Join{{block}});
    }
    ASSERT_TRUE(rig.move(move++, {{0}, 8}, Tier::ssd, Tier::device));
    EXPECT_LE(resident_bytes(rig.machine->range()) + resident_bytes(rig.machine->staging()), 10 * kBlock);
    ASSERT_TRUE(rig.move(move++, {{0}, 8}, Tier::device, Tier::ssd));
    for (std::uint32_t block = 0; block < 8; ++block) rig.ask(Split{{block}});
  }
  rig.machine->check_invariants();
}

TEST_P(CpuMachineTest, AThreadWaitsForThePieceThatItTouches) {
  Rig rig = CpuMachineTest::rig({});
  rig.ask(Populate{{{0}, 1}});
  fill(rig.block(0), kBlock, 4);
  std::vector<std::byte> expected(kBlock);
  fill(expected.data(), kBlock, 4);
  ASSERT_TRUE(rig.move(1, {{0}, 1}, Tier::device, Tier::ssd));
  std::byte seen{};
  const std::size_t at = 7 * kPieceBytes.value + 11;
  std::thread script([&] { seen = static_cast<volatile std::byte*>(rig.block(0))[at]; });
  const Event whole = rig.next();
  ASSERT_TRUE(std::holds_alternative<Faulted>(whole));
  EXPECT_EQ(std::get<Faulted>(whole).blocks, (BlockRange{{0}, 1}));
  rig.ask(Split{{0}});
  const Event piece = rig.next();
  ASSERT_TRUE(std::holds_alternative<Faulted>(piece));
  const BlockRange wanted = std::get<Faulted>(piece).blocks;
  EXPECT_EQ(wanted, (BlockRange{{pieces_of({0}).first.value + 7}, 1}));
  EXPECT_TRUE(rig.move(2, wanted, Tier::ssd, Tier::device, true));
  script.join();
  EXPECT_EQ(seen, expected[at]);
}

TEST_P(CpuMachineTest, WhoTouchesAParkedBlockGoesOnAndIsTold) {
  Rig rig = CpuMachineTest::rig({});
  rig.ask(Populate{{{0}, 3}});
  for (std::uint32_t index = 0; index < 3; ++index) fill(rig.block(index), kBlock, index);
  for (std::uint32_t index = 0; index < 3; ++index) rig.ask(Park{{index}});
  if (moves()) {
    std::thread script([&] { EXPECT_TRUE(holds(rig.block(1), kBlock, 1)); });
    const Event event = rig.next();
    ASSERT_TRUE(std::holds_alternative<Touched>(event));
    EXPECT_EQ(std::get<Touched>(event).block, BlockId{1});
    script.join();
  }
  EXPECT_TRUE(rig.machine->is_mapped({1}));
  EXPECT_EQ(rig.machine->is_mapped({2}), !moves()) << "who reads where blocks are copied does not fault";
  rig.ask(Park{{1}});
  rig.ask(Discard{{{2}, 1}, Tier::device});
  ASSERT_TRUE(rig.move(1, {{0}, 2}, Tier::device, Tier::ssd));
  ASSERT_TRUE(rig.move(2, {{0}, 2}, Tier::ssd, Tier::device));
  for (std::uint32_t index = 0; index < 2; ++index) EXPECT_TRUE(holds(rig.block(index), kBlock, index));
}

TEST_P(CpuMachineTest, AParkedBlockThatChildrenWantKeepsItsBytesForThem) {
  Rig rig = CpuMachineTest::rig({});
  rig.tensor_in_block_0(6);
  rig.ask(Park{{0}});
  const Rig::Forked forked = rig.fork();
  EXPECT_EQ(forked.could_want, std::optional(1u));
  rig.machine->children().allow(1);
  std::thread script([&] { fill(rig.block(0), kBlock, 7); });
  if (moves()) {
    EXPECT_TRUE(std::holds_alternative<Touched>(rig.next()));
  }
  while (rig.machine->children().slots() == 0) {
    rig.machine->inbox().kernel_done({{0}}, true);
    rig.next();
  }
  script.join();
  EXPECT_TRUE(holds(rig.block(0), kBlock, 7));
}

TEST_P(CpuMachineTest, WhatDiesInPiecesStaysForChildren) {
  Rig rig = CpuMachineTest::rig({});
  rig.tensor_in_block_0(6);
  ASSERT_TRUE(rig.move(1, {{0}, 1}, Tier::device, Tier::ssd));
  rig.ask(Split{{0}});
  const Rig::Forked forked = rig.fork();
  EXPECT_EQ(forked.could_want, std::optional(1u));
  rig.machine->children().allow(1);
  rig.machine->inbox().freed({0}, {{0}, 1});
  rig.machine->inbox().kernel_done({{0}}, true);
  EXPECT_TRUE(std::holds_alternative<Freed>(rig.next()));
  EXPECT_TRUE(std::holds_alternative<KernelDone>(rig.next()));
  rig.ask(Discard{{{0}, 1}, Tier::ssd});
  EXPECT_EQ(rig.machine->children().slots(), 1u);
}

TEST_P(CpuMachineTest, TheHostTierHoldsBlocksWithinItsOwnBudget) {
  Rig rig = CpuMachineTest::rig({.host_frames = 4});
  rig.ask(Populate{{{0}, 8}});
  for (std::uint32_t index = 0; index < 8; ++index) fill(rig.block(index), kBlock, index);
  EXPECT_TRUE(rig.move(1, {{0}, 4}, Tier::device, Tier::host));
  rig.ask(Populate{{{8}, 4}});
  fill(rig.block(8), 4 * kBlock, 99);
  EXPECT_LE(resident_bytes(rig.machine->range()) + resident_bytes(rig.machine->staging()), (10 + 4) * kBlock);
  rig.ask(Discard{{{8}, 4}, Tier::device});
  EXPECT_TRUE(rig.move(2, {{0}, 2}, Tier::host, Tier::device));
  EXPECT_TRUE(rig.move(3, {{4}, 2}, Tier::device, Tier::host));
  EXPECT_TRUE(rig.move(4, {{2}, 2}, Tier::host, Tier::device));
  EXPECT_TRUE(rig.move(5, {{4}, 2}, Tier::host, Tier::device));
  for (std::uint32_t index = 0; index < 8; ++index) EXPECT_TRUE(holds(rig.block(index), kBlock, index)) << index;
  EXPECT_LE(resident_bytes(rig.machine->range()) + resident_bytes(rig.machine->staging()), (10 + 4) * kBlock);
  EXPECT_EQ(rig.machine->stats().peak(Tier::host), kBlockBytes * 4);
}

TEST_P(CpuMachineTest, AWriteForWhichThereIsNoSpaceIsRefusedUntilThereIs) {
  Rig rig = CpuMachineTest::rig({}, 2);
  rig.ask(Populate{{{0}, 5}});
  for (std::uint32_t index = 0; index < 5; ++index) fill(rig.block(index), kBlock, index);
  EXPECT_TRUE(rig.move(1, {{0}, 1}, Tier::device, Tier::ssd));
  rig.ask(Move{.id = {2}, .blocks = {{1}, 3}, .from = Tier::device, .to = Tier::ssd, .urgency = Urgency::need});
  const Event refused = rig.answer();
  ASSERT_TRUE(std::holds_alternative<MoveFailed>(refused));
  EXPECT_TRUE(std::get<MoveFailed>(refused).cancelled);
  EXPECT_TRUE(rig.move(3, {{0}, 1}, Tier::ssd, Tier::device));
  EXPECT_TRUE(rig.move(4, {{1}, 2}, Tier::device, Tier::ssd));
  EXPECT_TRUE(rig.move(5, {{1}, 2}, Tier::ssd, Tier::device));
  for (std::uint32_t index = 0; index < 5; ++index) EXPECT_TRUE(holds(rig.block(index), kBlock, index)) << index;
}

TEST_P(CpuMachineTest, ADeadBlockIsDroppedWithoutAWriteAndItsFrameUsedAgain) {
  Rig rig = CpuMachineTest::rig({});
  for (std::uint32_t round = 0; round < 20; ++round) {
    rig.ask(Populate{{{round}, 8}});
    fill(rig.block(round), 8 * kBlock, round);
    rig.ask(Discard{{{round}, 8}, Tier::device});
  }
  EXPECT_LE(resident_bytes(rig.machine->range()) + resident_bytes(rig.machine->staging()), 10 * kBlock);
  EXPECT_EQ(rig.machine->stats().moved(Tier::device, Tier::ssd), Bytes{});
}

}  // namespace
}  // namespace spillway
