// See Note [A dead block that lives again] of the machine.
#include <optional>
#include <thread>

#include "machine_rig.h"
#include "machines/real/clock.h"

namespace spillway {
namespace {

TEST_P(CpuMachineTest, ADeadBlockThatLivesAgainKeepsWhatWasWritten) {
  Rig rig = CpuMachineTest::rig({});
  rig.tensor_in_block_0(1);
  rig.machine->inbox().freed({0}, {{0}, 1});
  rig.machine->inbox().kernel_ready({{{0}}, {0}, {}});
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

// Frames of the device, all if nothing else is said, are those of dead blocks that live again.
struct LiveAgain {
  Rig rig;
  std::uint32_t frames = rig.machine->device_blocks();
  BlockRange living, others{{20}, frames};

  explicit LiveAgain(Rig built, std::optional<std::uint32_t> count = {})
      : rig(std::move(built)), living{{0}, count.value_or(frames)} {
    CHECK(frames <= 20);
    rig.machine->inbox().allocated({0}, living);
    rig.machine->inbox().freed({0}, living);
    rig.machine->inbox().kernel_ready({{{0}}, {0}, {}}, true);
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
      rig.machine->inbox().kernel_done({{0}}, true);
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
  EXPECT_EQ(all.rig.fork().could_want, std::optional(all.frames));
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
  BlankBetween one(CpuMachineTest::rig({.around_io = around<FailingIo>([&](const Transfer&) { return writes_fail; })}));
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
  BlankBetween one(CpuMachineTest::rig(
      {.around_io = around<FailingIo>([&](const Transfer& transfer) { return transfer.write ? 0 : reads_fail; })}));
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

}  // namespace
}  // namespace spillway
