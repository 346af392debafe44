#include "machines/cpu/cpu_machine.h"

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "machine_rig.h"
#include "machines/cpu/clock.h"

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
  Rig rig = CpuMachineTest::rig(
      {.device_frames = 40, .around_io = [&](std::unique_ptr<BlockIo> io) -> std::unique_ptr<BlockIo> {
         return std::make_unique<FailingIo>(std::move(io), [&](const Transfer& transfer) {
           if (!transfer.write) reads.push_back(transfer.id);
           return 0;
         });
       }});
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
  Rig rig = CpuMachineTest::rig(
      {.device_frames = 70, .around_io = [&](std::unique_ptr<BlockIo> io) -> std::unique_ptr<BlockIo> {
         return std::make_unique<OneByOneIo>(std::move(io), [&](bool write, bool ends) {
           if (write) return;
           if (ends && read + under_way < kBlocks) least_before_the_last = std::min(least_before_the_last, under_way);
           ends ? --under_way : ++under_way;
           read += ends;
           most = std::max(most, under_way);
         });
       }});
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
  Rig rig = CpuMachineTest::rig({.around_io = [&](std::unique_ptr<BlockIo> io) {
    return std::make_unique<FailingIo>(std::move(io),
                                       [&](const Transfer& transfer) { return transfer.write ? 0 : reads_fail; });
  }});
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
  Rig rig = CpuMachineTest::rig({.around_io = [&](std::unique_ptr<BlockIo> io) {
    return std::make_unique<FailingIo>(
        std::move(io), [&](const Transfer& transfer) { return transfer.write ? writes_fail : reads_fail; });
  }});
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

TEST_P(CpuMachineTest, ADeadBlockThatLivesAgainKeepsWhatWasWritten) {
  Rig rig = CpuMachineTest::rig({});
  rig.tensor_in_block_0(1);
  rig.machine->inbox().freed({0}, {{0}, 1});
  rig.machine->inbox().kernel_ready({{0}, {0}, {}});
  std::thread other([&] { rig.block(40)[0] = std::byte{1}; });  // Its fault makes the machine read its messages.
  EXPECT_TRUE(std::holds_alternative<Freed>(rig.next()));
  rig.machine->inbox().allocated({1}, {{0}, 1});
  fill(rig.block(0), kBlock, 2);
  rig.ask(Discard{{{0}, 1}, Tier::device});  // The executor does not know yet.
  EXPECT_TRUE(holds(rig.block(0), kBlock, 2));
  EXPECT_TRUE(std::holds_alternative<KernelReady>(rig.next()));
  const Event fault = rig.next();
  ASSERT_TRUE(std::holds_alternative<Faulted>(fault));
  rig.ask(Populate{std::get<Faulted>(fault).blocks});
  other.join();
  EXPECT_TRUE(std::holds_alternative<Allocated>(rig.next()));
  const Event again = rig.next();
  ASSERT_TRUE(std::holds_alternative<Faulted>(again));
  EXPECT_EQ(std::get<Faulted>(again).blocks, (BlockRange{{0}, 1}));
  rig.ask(Populate{{{0}, 1}});
  EXPECT_TRUE(holds(rig.block(0), kBlock, 2));
}

// Frames of the device, all if nothing else is said, are those of dead blocks that live again: see the note of that
// name.
struct LiveAgain {
  Rig rig;
  std::uint32_t frames = rig.machine->device_blocks();
  BlockRange living, others{{20}, frames};

  explicit LiveAgain(Rig built, std::optional<std::uint32_t> count = {})
      : rig(std::move(built)), living{{0}, count.value_or(frames)} {
    CHECK(frames <= 20);
    rig.machine->inbox().allocated({0}, living);
    rig.machine->inbox().freed({0}, living);
    rig.machine->inbox().kernel_ready({{0}, {0}, {}}, true);
    EXPECT_TRUE(std::holds_alternative<Allocated>(rig.next()));
    EXPECT_TRUE(std::holds_alternative<Freed>(rig.next()));
    EXPECT_TRUE(std::holds_alternative<KernelReady>(rig.next()));
  }
  // They have their frames, die and are dropped, while a new tensor lives there already.
  void live_again() {
    rig.ask(Populate{living});
    rig.machine->inbox().allocated({1}, living);
    fill(rig.block(0), living.count * kBlock, 1);
    rig.ask(Discard{living, Tier::device});
  }
  // Until the machine has said of each that it has a frame; it says nothing else before.
  void hear_of_it() {
    for (std::uint32_t heard = 0; heard < living.count;) {
      const auto event = rig.next();
      const auto* fault = std::get_if<Faulted>(&event);
      heard += fault != nullptr && fault->stream == kNobody;
      CHECK(fault != nullptr || std::holds_alternative<Allocated>(event));
    }
  }
  bool hold_their_bytes() { return holds(rig.block(0), living.count * kBlock, 1); }
  std::size_t resident() { return resident_bytes(rig.machine->range()) + resident_bytes(rig.machine->staging()); }
};

TEST_P(CpuMachineTest, WhatWaitsForItsFirstFrameMakesRoomForDeadBlocksThatLiveAgain) {
  for (const Tier to : {Tier::host, Tier::ssd}) {
    LiveAgain all(CpuMachineTest::rig({.host_frames = 10, .patience = Nanos{2'000'000'000}}));
    Rig& rig = all.rig;
    all.live_again();
    rig.ask(Populate{all.others});
    std::thread script([&] { rig.block(all.others.first.value)[5] = std::byte{7}; });
    all.hear_of_it();
    while (rig.machine->stall().total(now()) == Nanos{}) {  // The thread waits already, which is told nobody.
      rig.machine->inbox().kernel_done({0}, true);
      EXPECT_TRUE(std::holds_alternative<KernelDone>(rig.next()));
    }
    EXPECT_TRUE(rig.move(1, all.others, Tier::device, to));
    rig.ask(Populate{all.living});
    EXPECT_EQ(std::get<Faulted>(rig.next()).blocks, (BlockRange{all.others.first, 1}));
    EXPECT_TRUE(all.hold_their_bytes());
    EXPECT_LE(all.resident(), (10 + 10) * kBlock);
    const Tier elsewhere = to == Tier::ssd ? Tier::host : Tier::ssd;
    EXPECT_TRUE(rig.move(2, all.living, Tier::device, elsewhere));
    EXPECT_TRUE(rig.move(3, all.others, to, Tier::device));
    script.join();
    EXPECT_EQ(rig.block(all.others.first.value)[5], std::byte{7});
    EXPECT_EQ(rig.machine->stats().moved(Tier::device, to) + rig.machine->stats().moved(to, Tier::device), Bytes{});
    fill(rig.block(all.others.first.value), all.frames * kBlock, 2);
    EXPECT_TRUE(rig.move(4, all.others, Tier::device, to));
    EXPECT_TRUE(rig.move(5, all.living, elsewhere, Tier::device));
    EXPECT_TRUE(all.hold_their_bytes());
    EXPECT_TRUE(rig.move(6, all.living, Tier::device, elsewhere));
    EXPECT_TRUE(rig.move(7, all.others, to, Tier::device));
    EXPECT_TRUE(holds(rig.block(all.others.first.value), all.frames * kBlock, 2));
  }
}

TEST_P(CpuMachineTest, WhatHasHadNoFrameIsGivenUpWhereverItIs) {
  for (const Tier to : {Tier::host, Tier::ssd}) {
    LiveAgain all(CpuMachineTest::rig({.host_frames = 10}));
    Rig& rig = all.rig;
    all.live_again();
    rig.ask(Populate{all.others});
    all.hear_of_it();
    EXPECT_TRUE(rig.move(1, all.others, Tier::device, to));
    rig.ask(Discard{all.others, to});
    rig.ask(Populate{all.living});
    rig.ask(Populate{all.others});
    rig.ask(Discard{all.others, Tier::device});
    rig.ask(Discard{{{0}, 1}, Tier::ssd});  // A copy, of which there is none.
    EXPECT_TRUE(all.hold_their_bytes());
    EXPECT_EQ(rig.machine->stats().peak(Tier::host), Bytes{});
    EXPECT_EQ(rig.machine->stats().peak(Tier::ssd), Bytes{});
  }
}

TEST_P(CpuMachineTest, AForkedChildWantsNothingOfWhatHasHadNoFrame) {
  LiveAgain all(CpuMachineTest::rig({}));
  CpuMachine& machine = *all.rig.machine;
  machine.inbox().allocated({2}, all.others);
  all.live_again();
  all.rig.ask(Populate{all.others});
  all.hear_of_it();
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  const UniqueFd childs(sockets[1]);
  std::optional<std::uint32_t> wanted;
  std::thread script([&] {
    wanted = machine.fork_begins(UniqueFd(sockets[0]));
    machine.fork_is_over();
    machine.inbox().kernel_done({0}, true);
  });
  EXPECT_TRUE(std::holds_alternative<KernelDone>(all.rig.next()));
  script.join();
  EXPECT_EQ(wanted, std::optional(all.frames));
}

// One that waits for its first frame and its neighbours, which have theirs, leave and come together.
struct BlankBetween : LiveAgain {
  static constexpr std::uint32_t before = 20, blank = before + 1, after = blank + 1;

  explicit BlankBetween(Rig built) : LiveAgain(std::move(built), 1) {
    rig.ask(Populate{{{before}, 1}});
    rig.ask(Populate{{{after}, frames - 2}});
    fill(rig.block(before), kBlock, 2);
    live_again();
    rig.ask(Populate{{{blank}, 1}});
    hear_of_it();
  }
};

TEST_P(CpuMachineTest, WhatWaitsForItsFirstFrameWaitsAgainWhenItsNeighbourCannotLeave) {
  int writes_fail = EIO;
  BlankBetween one(CpuMachineTest::rig({.around_io = [&](std::unique_ptr<BlockIo> io) {
    return std::make_unique<FailingIo>(std::move(io), [&](const Transfer&) { return writes_fail; });
  }}));
  Rig& rig = one.rig;
  EXPECT_FALSE(rig.move(1, {{one.before}, 2}, Tier::device, Tier::ssd));
  writes_fail = 0;
  rig.machine->inbox().allocated({2}, {{one.after}, 1});
  EXPECT_FALSE(rig.move(2, {{one.blank}, 2}, Tier::device, Tier::ssd)) << "nobody has heard of the new tensor";
  EXPECT_TRUE(std::holds_alternative<Allocated>(rig.next()));
  EXPECT_FALSE(rig.machine->is_mapped({one.blank}));
  EXPECT_TRUE(rig.move(3, {{one.after}, 1}, Tier::device, Tier::ssd));
  EXPECT_TRUE(rig.machine->is_mapped({one.blank}));
}

TEST_P(CpuMachineTest, WhatHasHadNoFrameStaysAwayWhenItsNeighbourCannotCome) {
  int reads_fail = EIO;
  BlankBetween one(CpuMachineTest::rig({.around_io = [&](std::unique_ptr<BlockIo> io) {
    return std::make_unique<FailingIo>(std::move(io),
                                       [&](const Transfer& transfer) { return transfer.write ? 0 : reads_fail; });
  }}));
  Rig& rig = one.rig;
  EXPECT_TRUE(rig.move(1, {{one.before}, 2}, Tier::device, Tier::ssd));
  rig.ask(Populate{one.living});
  EXPECT_TRUE(rig.move(2, {{one.after}, 1}, Tier::device, Tier::ssd));
  for (std::uint32_t id = 3; id < 15; ++id) EXPECT_FALSE(rig.move(id, {{one.before}, 2}, Tier::ssd, Tier::device));
  reads_fail = 0;
  EXPECT_TRUE(rig.move(15, {{one.before}, 2}, Tier::ssd, Tier::device));
  EXPECT_TRUE(rig.machine->is_mapped({one.blank}));
  EXPECT_TRUE(holds(rig.block(one.before), kBlock, 2));
  EXPECT_TRUE(one.hold_their_bytes());
}

TEST_P(CpuMachineTest, ArrivalsThatCannotStartMakeRoomForDeadBlocksThatLiveAgain) {
  for (const bool are_all : {true, false})
    for (const Tier from : {Tier::host, Tier::ssd}) {
      LiveAgain all(CpuMachineTest::rig({.host_frames = 10, .patience = Nanos{2'000'000'000}}),
                    are_all ? std::nullopt : std::optional(6u));
      Rig& rig = all.rig;
      rig.ask(Populate{all.others});
      fill(rig.block(all.others.first.value), all.frames * kBlock, 2);
      EXPECT_TRUE(rig.move(1, all.others, Tier::device, from));
      all.live_again();
      rig.ask(Move{.id = {2}, .blocks = all.others, .from = from, .to = Tier::device, .urgency = Urgency::need});
      all.hear_of_it();
      const Event refused = rig.answer();
      ASSERT_TRUE(std::holds_alternative<MoveFailed>(refused));
      EXPECT_TRUE(std::get<MoveFailed>(refused).cancelled);
      rig.ask(Populate{all.living});
      EXPECT_TRUE(all.hold_their_bytes());
      const Tier elsewhere = from == Tier::ssd ? Tier::host : Tier::ssd;
      EXPECT_TRUE(rig.move(3, all.living, Tier::device, elsewhere));
      EXPECT_TRUE(rig.move(4, all.others, from, Tier::device));
      EXPECT_TRUE(holds(rig.block(all.others.first.value), all.frames * kBlock, 2));
      EXPECT_TRUE(rig.move(5, all.others, Tier::device, from));
      EXPECT_TRUE(rig.move(6, all.living, elsewhere, Tier::device));
      EXPECT_TRUE(all.hold_their_bytes());
    }
}

TEST_P(CpuMachineTest, AnArrivalIsNotRefusedBeforeTheExecutorHasHeardWhatItCanMakeRoomFor) {
  for (const Tier from : {Tier::host, Tier::ssd}) {
    LiveAgain one(CpuMachineTest::rig({.host_frames = 10}), 1);
    Rig& rig = one.rig;
    rig.ask(Populate{{{50}, 1}});
    fill(rig.block(50), kBlock, 2);
    EXPECT_TRUE(rig.move(1, {{50}, 1}, Tier::device, from));
    one.live_again();
    rig.ask(Populate{{{20}, one.frames - 1}});
    rig.ask(Move{.id = {2}, .blocks = {{50}, 1}, .from = from, .to = Tier::device, .urgency = Urgency::plan});
    one.hear_of_it();
    const Command room[] = {
        Move{.id = {3}, .blocks = {{20}, 1}, .from = Tier::device, .to = Tier::ssd, .urgency = Urgency::need},
        Populate{one.living}};
    rig.machine->submit(room);
    for (int moves = 0; moves < 2; ++moves) EXPECT_TRUE(std::holds_alternative<MoveDone>(rig.answer()));
    EXPECT_TRUE(holds(rig.block(50), kBlock, 2));
    EXPECT_TRUE(one.hold_their_bytes());
  }
}

TEST_P(CpuMachineTest, ABlockWithANewTensorThatTheExecutorDoesNotKnowOfDoesNotLeave) {
  for (const Tier to : {Tier::host, Tier::ssd}) {
    Rig rig = CpuMachineTest::rig({.host_frames = 2});
    rig.tensor_in_block_0(1);
    rig.machine->inbox().freed({0}, {{0}, 1});
    rig.machine->inbox().allocated({1}, {{0}, 1});
    fill(rig.block(0), kBlock, 2);
    rig.ask(Move{.id = {1}, .blocks = {{0}, 1}, .from = Tier::device, .to = to, .urgency = Urgency::need});
    const Event refused = rig.next();
    ASSERT_TRUE(std::holds_alternative<MoveFailed>(refused));
    EXPECT_TRUE(std::get<MoveFailed>(refused).cancelled);
    EXPECT_TRUE(std::holds_alternative<Freed>(rig.next()));
    EXPECT_TRUE(std::holds_alternative<Allocated>(rig.next()));
    EXPECT_TRUE(rig.move(2, {{0}, 1}, Tier::device, to));
    EXPECT_TRUE(rig.move(3, {{0}, 1}, to, Tier::device));
    EXPECT_TRUE(holds(rig.block(0), kBlock, 2));
  }
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
