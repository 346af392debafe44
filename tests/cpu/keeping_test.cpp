// What waits, and for how long, until blocks are kept that forked processes still see. See Note [Keeping blocks].
#include <thread>

#include "machine_rig.h"

namespace spillway {
namespace {

// Six blocks of a tensor, and a fork of which only the moment is here: all that they hold is wanted.
struct Wanted {
  static constexpr BlockRange all{{0}, 6};
  HoldingIo::Held held;
  Rig rig;
  std::optional<Rig::Forked> forked;

  explicit Wanted(Rig (*make)(CpuMachineOptions), Tier where = Tier::device)
      : rig(make({.host_frames = all.count,
                  .around_io = around<HoldingIo>(std::ref(held), [](const Transfer& one) { return one.id >= 64; })})) {
    rig.machine->inbox().allocated({0}, all);
    rig.machine->inbox().kernel_done({{0}}, true);
    EXPECT_TRUE(std::holds_alternative<Allocated>(rig.next()));
    EXPECT_TRUE(std::holds_alternative<KernelDone>(rig.next()));
    rig.ask(Populate{all});
    for (std::uint32_t index = 0; index < all.count; ++index) fill(rig.block(index), kBlock, index);
    EXPECT_TRUE(where == Tier::device || rig.move(100, all, Tier::device, where));
    forked.emplace(rig.fork());
    EXPECT_EQ(forked->could_want, std::optional(all.count));
    rig.machine->children().allow(all.count);
    held.on = true;
  }
  ~Wanted() { held.on = false; }

  // The loop goes on, and has nothing to tell of what waits.
  void has_turns(int turns) {
    for (int turn = 0; turn < turns; ++turn) {
      rig.machine->inbox().kernel_done({{0}}, true);
      EXPECT_TRUE(std::holds_alternative<KernelDone>(rig.next()));
    }
  }
  void dies() {
    rig.machine->inbox().freed({0}, all);
    rig.machine->inbox().kernel_done({{0}}, true);
    EXPECT_TRUE(std::holds_alternative<Freed>(rig.next()));
    EXPECT_TRUE(std::holds_alternative<KernelDone>(rig.next()));
  }
  void until_held(std::size_t count) {
    while (held.count < count) has_turns(1);
    has_turns(20);
    EXPECT_EQ(held.count, count);
  }
  bool hold_their_bytes() {
    for (std::uint32_t index = 0; index < all.count; ++index)
      if (!holds(rig.block(index), kBlock, index)) return false;
    return true;
  }
};

TEST_P(CpuMachineTest, AMoveThatIsGivenUpEndsOnceItsBlocksAreKept) {
  Wanted one([](CpuMachineOptions options) { return CpuMachineTest::rig(std::move(options)); });
  one.rig.ask(Move{.id = {1}, .blocks = one.all, .from = Tier::device, .to = Tier::ssd, .urgency = Urgency::need});
  one.rig.ask(Cancel{{1}});
  if (moves()) {  // Nothing protects what is moved back.
    one.until_held(KeptBlocks::kMostWrites);
    one.held.on = false;
  }
  EXPECT_EQ(std::get<MoveFailed>(one.rig.answer()).cancelled, true);
  EXPECT_EQ(one.held.count, 0u);
  EXPECT_TRUE(one.hold_their_bytes());
  EXPECT_EQ(one.rig.machine->children().slots(), moves() ? one.all.count : 0);
  EXPECT_TRUE(one.rig.move(2, one.all, Tier::device, Tier::ssd));
}

TEST_P(CpuMachineTest, WhatComesFromHostMemoryComesOnceItIsKept) {
  Wanted one([](CpuMachineOptions options) { return CpuMachineTest::rig(std::move(options)); }, Tier::host);
  one.rig.ask(Move{.id = {1}, .blocks = one.all, .from = Tier::host, .to = Tier::device, .urgency = Urgency::need});
  one.until_held(KeptBlocks::kMostWrites);
  EXPECT_FALSE(one.rig.machine->is_mapped({5}));
  one.held.on = false;
  EXPECT_TRUE(std::holds_alternative<MoveDone>(one.rig.answer()));
  EXPECT_TRUE(one.hold_their_bytes());
  EXPECT_EQ(one.rig.machine->children().slots(), one.all.count);
}

TEST_P(CpuMachineTest, WhatComesFromTheSsdNeedsNoSecondCopyToBeKept) {
  Wanted one([](CpuMachineOptions options) { return CpuMachineTest::rig(std::move(options)); }, Tier::ssd);
  EXPECT_TRUE(one.rig.move(1, one.all, Tier::ssd, Tier::device));
  EXPECT_TRUE(one.hold_their_bytes());
  EXPECT_EQ(one.held.count, 0u);
  EXPECT_EQ(one.rig.machine->children().slots(), one.all.count);
  EXPECT_EQ(one.rig.machine->stats().held(Tier::ssd), kBlockBytes * one.all.count);
}

TEST_P(CpuMachineTest, HostFramesOfTheDeadAreFreeOnceTheirBytesAreKept) {
  Wanted one([](CpuMachineOptions options) { return CpuMachineTest::rig(std::move(options)); }, Tier::host);
  one.rig.ask(Populate{{{10}, 3}});
  one.dies();
  one.rig.ask(Discard{one.all, Tier::host});
  one.until_held(KeptBlocks::kMostWrites);
  EXPECT_EQ(one.rig.machine->stats().held(Tier::host), kBlockBytes * one.all.count);
  EXPECT_FALSE(one.rig.move(1, {{10}, 3}, Tier::device, Tier::host));
  one.rig.ask(Populate{one.all});  // Another tensor's, which needs none of these frames.
  one.held.on = false;
  std::uint32_t id = 2;
  while (!one.rig.move(id++, {{10}, 3}, Tier::device, Tier::host)) {
  }
  EXPECT_LE(one.rig.machine->stats().peak(Tier::host), kBlockBytes * one.all.count);
}

TEST_P(CpuMachineTest, FramesOfTheDeadAreFreeOnceTheirBytesAreKept) {
  Wanted one([](CpuMachineOptions options) { return CpuMachineTest::rig(std::move(options)); });
  one.dies();
  one.rig.ask(Discard{one.all, Tier::device});
  one.until_held(KeptBlocks::kMostWrites);
  const std::uint32_t rest = one.rig.machine->device_blocks() - (one.all.count - KeptBlocks::kMostWrites);
  one.rig.ask(Populate{{{20}, rest + 1}});
  EXPECT_TRUE(one.rig.machine->is_mapped({20 + rest - 1}));
  EXPECT_FALSE(one.rig.machine->is_mapped({20 + rest}));
  one.held.on = false;
  while (!one.rig.machine->is_mapped({20 + rest})) one.has_turns(1);
  EXPECT_LE(one.rig.machine->stats().peak(Tier::device), kBlockBytes * 10);
}

TEST_P(CpuMachineTest, ABlockMayLeaveWhileAThreadWaitsToWriteToIt) {
  Wanted one([](CpuMachineOptions options) { return CpuMachineTest::rig(std::move(options)); });
  std::thread script([&] {
    for (std::uint32_t index = 0; index <= KeptBlocks::kMostWrites; ++index) one.rig.block(index)[0] = std::byte{1};
    one.rig.machine->inbox().kernel_done({{7}}, true);
  });
  one.until_held(KeptBlocks::kMostWrites);
  const BlockRange last{{KeptBlocks::kMostWrites}, 1};
  one.rig.ask(Move{.id = {1}, .blocks = last, .from = Tier::device, .to = Tier::ssd, .urgency = Urgency::need});
  if (!moves()) one.held.on = false;  // There the writer makes it stay.
  bool is_away = false, is_missed = false, is_asked_for = false;
  for (bool done = false; !done;) {
    const Event event = one.rig.next();
    is_away |= std::holds_alternative<MoveDone>(event);
    is_missed |= std::holds_alternative<Faulted>(event);
    if (is_away && is_missed && !std::exchange(is_asked_for, true))
      one.rig.ask(Move{.id = {2}, .blocks = last, .from = Tier::ssd, .to = Tier::device, .urgency = Urgency::fault});
    done = std::holds_alternative<KernelDone>(event);
  }
  script.join();
  EXPECT_EQ(one.rig.block(last.first.value)[0], std::byte{1});
}

}  // namespace
}  // namespace spillway
