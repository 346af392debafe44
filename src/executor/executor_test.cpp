#include "executor/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace spillway {
namespace {

TEST(Executor, ABlockThatCannotBeReadEndsTheRunThoughOthersCan) {
  PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
  table.add_blocks(4, kBlockBytes);
  for (std::uint32_t block = 0; block < 4; ++block) table.place({block}, Tier::ssd);
  Executor executor(std::move(table), {});
  std::vector<Command> commands;
  executor.on(Allocated{{0}, {{0}, 4}}, commands);
  executor.on(Faulted{{0}, {{0}, 1}}, commands);
  for (std::uint32_t other = 1; !executor.failure(); ++other) {
    ASSERT_LE(other, 4u);
    const MoveId bad = std::get<Move>(commands.back()).id;
    if (other < 4) {
      executor.on(Faulted{{1}, {{other}, 1}}, commands);
      executor.on(MoveDone{std::get<Move>(commands.back()).id}, commands);
    }
    executor.on(MoveFailed{bad}, commands);
  }
  EXPECT_EQ(executor.failure()->kind, Failure::Kind::unreadable);
  EXPECT_EQ(executor.failure()->bytes, kBlockBytes);
}

TEST(Executor, WritesThatAreUnderWayTogetherFailAsOne) {
  PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
  table.add_blocks(8, kBlockBytes);
  for (std::uint32_t block = 0; block < 8; ++block) table.place({block}, block < 4 ? Tier::device : Tier::ssd);
  Executor executor(std::move(table), {.migration = {.piece_blocks = 1}});
  std::vector<Command> commands;
  executor.on(Allocated{{0}, {{0}, 8}}, commands);
  for (std::uint32_t stream = 0; stream < 4; ++stream) executor.on(Faulted{{stream}, {{4 + stream}, 1}}, commands);
  std::vector<MoveId> writes;
  for (const Command& command : commands)
    if (const auto* move = std::get_if<Move>(&command)) writes.push_back(move->id);
  ASSERT_EQ(writes.size(), 4u);
  for (const MoveId write : writes) {
    commands.clear();
    executor.on(MoveFailed{write}, commands);
  }
  EXPECT_TRUE(std::ranges::any_of(commands, [](const Command& one) { return std::holds_alternative<Move>(one); }))
      << "the disk may be back, and is tried";
}

// An instruction of one thread needs two blocks at once, while another thread runs small kernels.
TEST(Executor, AThreadThatWaitsKeepsWhatItHasFaultedInHoweverManyKernelsOthersRun) {
  PageTable table({kBlockBytes * 3, {}, kBlockBytes * 10});
  table.add_blocks(4, kBlockBytes);
  for (std::uint32_t block = 0; block < 4; ++block) table.place({block}, Tier::ssd);
  Executor executor(std::move(table), {.migration = {.piece_blocks = 1}});
  std::vector<Command> commands;
  executor.on(Allocated{{0}, {{0}, 4}}, commands);
  executor.on(Faulted{{0}, {{0}, 1}}, commands);
  executor.on(MoveDone{std::get<Move>(commands.back()).id}, commands);
  executor.on(Faulted{{0}, {{1}, 1}}, commands);
  const MoveId second = std::get<Move>(commands.back()).id;
  for (int kernel = 0; kernel < 40; ++kernel) {
    executor.on(KernelReady{{1}, kNoKernel, {}}, commands);
    executor.on(KernelDone{{1}}, commands);
  }
  EXPECT_TRUE(executor.table().pinned({0}));
  executor.on(MoveDone{second}, commands);
  for (int kernel = 0; kernel < 40; ++kernel) {
    executor.on(KernelReady{{1}, kNoKernel, {}}, commands);
    executor.on(KernelDone{{1}}, commands);
  }
  EXPECT_FALSE(executor.table().pinned({0}));
}

TEST(Executor, AnEvictionThatWaitsIsForgottenWhenItsTensorDiesAndAnotherOneIsBornThere) {
  Plan plan;
  plan.evictions = {{{0}, {0}, Tier::ssd}, {{1}, {0}, Tier::ssd}};
  PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
  table.add_blocks(2, kBlockBytes);
  for (const std::uint32_t block : {0u, 1u}) table.place({block}, Tier::device);
  Executor executor(std::move(table), {.migration = {.keep_dead_blocks = true}});
  executor.adopt(plan, 2);
  std::vector<Command> commands;
  const auto tell = [&](const Event& event) { executor.on(event, commands); };
  for (const std::uint32_t tensor : {0u, 1u}) tell(Allocated{{tensor}, {{tensor}, 1}});
  tell(KernelReady{{0}, {0}, {}});
  tell(KernelDone{{0}});
  const Move first = std::get<Move>(commands.back());
  EXPECT_EQ(first.blocks.first, BlockId{0});
  tell(Freed{{1}, {{1}, 1}});
  tell(Allocated{{2}, {{1}, 1}});
  commands.clear();
  tell(MoveDone{first.id});
  EXPECT_TRUE(std::ranges::none_of(commands, [](const Command& one) { return std::holds_alternative<Move>(one); }));
}

// Two tensors of one block that a plan brings back when kernel 0 starts, the second one once the first has come.
struct TwoPrefetches {
  TwoPrefetches() {
    plan.prefetches = {{{0}, {0}}, {{1}, {0}}};
    plan.evictions = {{{1}, {1}, Tier::ssd}};
    PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
    table.add_blocks(2, kBlockBytes);
    for (const std::uint32_t block : {0u, 1u}) table.place({block}, Tier::ssd);
    executor.emplace(std::move(table), ExecutorOptions{});
    executor->adopt(plan, 2);
    for (const std::uint32_t tensor : {0u, 1u}) tell(Allocated{{tensor}, {{tensor}, 1}});
    tell(KernelReady{{0}, {0}, {}});
    first = last_move();
  }
  void tell(const Event& event) { executor->on(event, commands); }
  void start_kernel_1_with(std::uint32_t tensor) {
    const BlockAccess access[] = {{.blocks = {{tensor}, 1}}};
    tell(KernelDone{{0}});
    tell(KernelReady{{0}, {1}, access});
  }
  const Move& last_move() const { return std::get<Move>(commands.back()); }

  Plan plan;
  std::optional<Executor> executor;
  std::vector<Command> commands;
  Move first;
};

TEST(Executor, AFaultOnABlockWhosePlannedReadFailsIsServed) {
  TwoPrefetches run;
  EXPECT_EQ(run.first.urgency, Urgency::plan);
  run.tell(Faulted{{0}, {{0}, 1}});
  run.tell(MoveFailed{run.first.id});
  const auto* again = std::get_if<Move>(&run.commands[run.commands.size() - 2]);
  ASSERT_TRUE(again != nullptr);
  EXPECT_EQ(again->urgency, Urgency::fault);
  EXPECT_EQ(again->blocks, run.first.blocks);
}

TEST(Executor, AKernelWaitsForAPlannedReadAndForTheOneAfterItsFailure) {
  TwoPrefetches run;
  run.start_kernel_1_with(0);
  run.tell(MoveFailed{run.first.id});
  const auto* again = std::get_if<Move>(&run.commands[run.commands.size() - 2]);
  ASSERT_TRUE(again != nullptr);
  EXPECT_EQ(again->urgency, Urgency::need);
  run.tell(MoveDone{again->id});
  EXPECT_TRUE(std::holds_alternative<Launch>(run.commands.back()));
}

TEST(Executor, APrefetchThatComesTooLateDoesNotUndoTheNextEviction) {
  TwoPrefetches run;
  run.start_kernel_1_with(1);  // Its prefetch waits behind the first one.
  run.tell(MoveDone{run.last_move().id});
  run.tell(KernelDone{{0}});
  const Move eviction = run.last_move();
  EXPECT_EQ(eviction.to, Tier::ssd);
  run.tell(MoveDone{eviction.id});
  const std::size_t before = run.commands.size();
  run.tell(MoveDone{run.first.id});
  EXPECT_EQ(run.commands.size(), before);
}

// One tensor that a plan brings back, its copy kept, when kernel 0 starts, and evicts when kernel 1 has ended.
struct KeptCopy {
  explicit KeptCopy(Bytes ssd = kBlockBytes * 10, std::uint32_t device = 4) {
    plan.prefetches = {{{0}, {0}, true}};
    plan.evictions = {{{0}, {1}, Tier::ssd}};
    PageTable table({kBlockBytes * device, {}, ssd});
    table.add_blocks(8, kBlockBytes);
    table.place({0}, Tier::ssd);
    executor.emplace(std::move(table), ExecutorOptions{.window_blocks = 1, .migration = {}});
    executor->adopt(plan, 2);
    tell(Allocated{{0}, {{0}, 1}});
    kernel(0, {});
    come = last_move();
    EXPECT_TRUE(come.clean);
  }
  void tell(const Event& event) { executor->on(event, commands); }
  void kernel(std::uint32_t kernel, std::vector<BlockAccess> accesses) {
    if (kernel > 0) tell(KernelDone{{0}});
    tell(KernelReady{{0}, {kernel}, accesses});
  }
  BlockState state() const { return executor->table().state({0}); }
  const Move& last_move() const { return std::get<Move>(commands.back()); }

  Plan plan;
  std::optional<Executor> executor;
  std::vector<Command> commands;
  Move come;
};

TEST(Executor, WhatNobodyHasWrittenLeavesAsClean) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(), BlockState::clean);
  run.kernel(1, {{.blocks = {{0}, 1}}});
  run.tell(KernelDone{{0}});
  EXPECT_TRUE(run.last_move().clean);
  run.tell(MoveDone{run.last_move().id});
  EXPECT_EQ(run.state(), BlockState::stored);
  EXPECT_EQ(run.executor->dropped_clean(), kBlockBytes);
  EXPECT_EQ(run.executor->moved()(Tier::device, Tier::ssd), Bytes{});
}

TEST(Executor, WhatNoPlanBringsKeepsItsCopyWhereThePolicySaysSo) {
  Plan moves;
  moves.prefetches = {{{1}, {0}}};
  for (const bool keeps : {false, true})
    for (const bool planned : {false, true}) {
      PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
      table.add_blocks(2, kBlockBytes);
      table.place({0}, Tier::ssd);
      Executor executor(std::move(table), {.migration = {.keeps_copies = keeps}});
      executor.adopt(moves, 1);
      const Plan none;
      if (!planned) executor.adopt(none, 1);  // The plan is given up.
      std::vector<Command> commands;
      executor.on(Allocated{{0}, {{0}, 1}}, commands);
      executor.on(Faulted{{0}, {{0}, 1}}, commands);
      EXPECT_EQ(std::get<Move>(commands.back()).clean, keeps);
    }
}

TEST(Executor, AKernelThatWritesMakesTheCopyWorthless) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.kernel(1, {{.blocks = {{0}, 1}, .writes = true, .sparse = true}});
  EXPECT_TRUE(std::ranges::any_of(run.commands,
                                  [](const Command& command) { return std::holds_alternative<Discard>(command); }));
  EXPECT_EQ(run.state(), BlockState::resident);
  run.tell(KernelDone{{0}});
  EXPECT_FALSE(run.last_move().clean);
}

TEST(Executor, WhatArrivesForAKernelThatWritesHasNoCopyLeft) {
  KeptCopy run;
  run.kernel(1, {{.blocks = {{0}, 1}, .writes = true}});
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(), BlockState::resident);
  EXPECT_EQ(run.executor->table().used(Tier::ssd), Bytes{});
}

// The machine maps the first blocks of a move before it tells of the end of all.
TEST(Executor, WhatIsWrittenBeforeItsArrivalIsToldHasNoCopyLeft) {
  KeptCopy run;
  run.tell(KernelReady{{1}, kNoKernel, std::vector<BlockAccess>{{.blocks = {{0}, 1}, .writes = true}}, {}, false});
  run.tell(KernelDone{{1}});
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(), BlockState::resident);
  EXPECT_EQ(run.executor->table().used(Tier::ssd), Bytes{});
}

TEST(Executor, WhatIsCleanLeavesThoughTheSsdTakesNoMore) {
  KeptCopy run(kBlockBytes * 10, 7);
  run.tell(Allocated{{1}, {{1}, 7}});
  for (std::uint32_t block = 1; block < 7; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  run.tell(MoveDone{run.come.id});  // So others are victims before it.
  run.tell(Faulted{{1}, {{7}, 1}});
  for (int failure = 0; failure < 4; ++failure) {
    ASSERT_FALSE(run.last_move().clean) << failure;
    run.tell(MoveFailed{run.last_move().id});
  }
  EXPECT_TRUE(run.last_move().clean);
  EXPECT_FALSE(run.executor->failure());
}

TEST(Executor, CopiesGiveWayToWhatMustLeave) {
  KeptCopy run(kBlockBytes);
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{1}, 4}});
  for (std::uint32_t block = 1; block < 4; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  EXPECT_EQ(run.state(), BlockState::clean);
  const BlockAccess keeps[] = {{.blocks = {{0}, 1}}};
  run.tell(KernelReady{{2}, kNoKernel, keeps});  // It stays, so another one must leave.
  run.tell(Faulted{{1}, {{4}, 1}});
  EXPECT_TRUE(run.last_move().to == Tier::ssd && !run.last_move().clean);
  EXPECT_EQ(run.state(), BlockState::resident);
  EXPECT_FALSE(run.executor->failure());
}

TEST(Executor, ACopyStaysWhereAnotherBlockCouldNotLeave) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{1}, 5}});
  for (std::uint32_t block = 1; block < 4; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  const BlockAccess keeps[] = {{.blocks = {{0}, 1}}};
  run.tell(KernelReady{{2}, kNoKernel, keeps});
  run.tell(Faulted{{1}, {{4}, 1}});
  run.tell(MoveFailed{run.last_move().id, true});
  EXPECT_EQ(run.state(), BlockState::clean);
}

TEST(Executor, WhatIsMadeInItsBlockMakesTheCopyWorthless) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{0}, 1}});
  EXPECT_EQ(run.state(), BlockState::resident);
  EXPECT_EQ(run.executor->table().used(Tier::ssd), Bytes{});
}

// Tells it, and the end of every move that it leads to; returns these moves.
std::vector<Move> settled(Executor& executor, const Event& first) {
  std::vector<Move> moves;
  std::vector<Event> events{first};
  for (std::size_t at = 0; at < events.size(); ++at) {
    std::vector<Command> commands;
    executor.on(Event(events[at]), commands);
    for (const Command& command : commands)
      if (const auto* move = std::get_if<Move>(&command)) {
        moves.push_back(*move);
        events.push_back(MoveDone{move->id});
      }
  }
  return moves;
}

TEST(Executor, WhatIsCleanLeavesForHostMemoryAsLongAsThatHasRoom) {
  PageTable table({kBlockBytes * 2, kBlockBytes, kBlockBytes * 10});
  table.add_blocks(4, kBlockBytes);
  for (std::uint32_t block = 0; block < 4; ++block) table.place({block}, Tier::ssd);
  Executor executor(std::move(table), {.window_blocks = 1, .migration = {.keeps_copies = true, .piece_blocks = 1}});
  std::vector<std::pair<Tier, bool>> left;  // where to, and whether clean
  settled(executor, Allocated{{0}, {{0}, 4}});
  for (std::uint32_t block = 0; block < 4; ++block)
    for (const Move& move : settled(executor, Faulted{{0}, {{block}, 1}}))
      if (move.to != Tier::device) left.emplace_back(move.to, move.clean);
  EXPECT_EQ(left, (std::vector<std::pair<Tier, bool>>{{Tier::host, false}, {Tier::ssd, true}}));
}

TEST(Executor, ADeadTensorsCopyIsGivenUpAtOnce) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Freed{{0}, {{0}, 1}});
  EXPECT_EQ(run.state(), BlockState::empty);
  EXPECT_EQ(run.executor->table().used(Tier::ssd), Bytes{});
}

// Three blocks, of which the device has room for two: 0 and 1 are there and live.
struct MakesSomething {
  explicit MakesSomething(std::vector<std::vector<BlockRange>> made_by_kernel) : births(std::move(made_by_kernel)) {
    PageTable table({kBlockBytes * 2, {}, kBlockBytes * 10});
    table.add_blocks(3, kBlockBytes);
    for (const std::uint32_t block : {0u, 1u}) table.place({block}, Tier::device);
    executor.emplace(std::move(table), ExecutorOptions{.migration = {.keep_dead_blocks = true}});
    executor->adopt(plan, 3, {.homes = homes, .rows = {}, .births = births});
    for (const std::uint32_t block : {0u, 1u}) tell(Allocated{{block}, {{block}, 1}});
  }
  std::vector<Command> tell(const Event& event) {
    std::vector<Command> commands;
    executor->on(event, commands);
    return commands;
  }

  const Plan plan;
  const std::vector<BlockRange> homes = {{{0}, 1}, {{1}, 1}, {{2}, 1}};
  const std::vector<std::vector<BlockRange>> births;
  std::optional<Executor> executor;
};

TEST(Executor, NothingThatThePlanKeepsLeavesForWhatLaterKernelsMake) {
  MakesSomething run({{}, {}, {{{2}, 1}}});
  for (const std::uint32_t kernel : {0u, 1u}) {
    EXPECT_EQ(run.tell(KernelReady{{0}, {kernel}, {}}).size(), 1u) << "the launch";
    run.tell(KernelDone{{0}});
  }
  const std::vector<Command> commands = run.tell(KernelReady{{0}, {2}, {}});
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Move>(commands[1]));
}

TEST(Executor, WhatDiedWhereAKernelIsAboutToMakeSomethingLeavesItsFrameThere) {
  MakesSomething run({{{{2}, 1}}, {{{0}, 1}}, {}});
  Executor& executor = *run.executor;
  run.tell(Freed{{0}, {{0}, 1}});
  std::vector<Command> commands = run.tell(KernelReady{{0}, {0}, {}});
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Launch>(commands[0]));
  ASSERT_TRUE(std::holds_alternative<Move>(commands[1]));
  EXPECT_EQ(std::get<Move>(commands[1]).blocks, (BlockRange{{1}, 1}));
  EXPECT_EQ(executor.table().state({0}), BlockState::resident);
  for (std::uint32_t kernel = 0; kernel < Executor::kPatience; ++kernel) {
    EXPECT_EQ(executor.table().state({0}), BlockState::resident) << kernel;
    executor.on(KernelDone{{0}}, commands);
    executor.on(KernelReady{{0}, kNoKernel, {}}, commands);
  }
  EXPECT_EQ(executor.table().state({0}), BlockState::empty) << "the script does something else";
}

// A plan of two kernels that use blocks 0 and 1, or bring them back, and three blocks of which it knows nothing.
struct OthersBlocks {
  explicit OthersBlocks(bool brings_back) {
    if (brings_back) plan.prefetches = {{{0}, {0}}};
    PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
    table.add_blocks(6, kBlockBytes);
    for (const std::uint32_t block : {1u, 2u, 3u, 4u}) table.place({block}, Tier::device);
    table.place({0}, Tier::ssd);
    executor.emplace(std::move(table), ExecutorOptions{.window_blocks = 1, .migration = {.piece_blocks = 1}});
    for (std::uint32_t block = 0; block < 6; ++block) tell(Allocated{{block}, {{block}, 1}});
    executor->adopt(plan, 2, {.homes = homes, .rows = rows, .births = {}});
  }
  void tell(const Event& event) { executor->on(event, commands); }
  void kernel(std::uint32_t kernel, std::vector<BlockAccess> accesses) {
    tell(KernelReady{{0}, {kernel}, accesses});
    tell(KernelDone{{0}});
  }
  BlockState state(std::uint32_t block) const { return executor->table().state({block}); }
  // The first that has left the device.
  std::optional<BlockRange> left() const {
    for (const Command& command : commands)
      if (const auto* move = std::get_if<Move>(&command); move && move->from == Tier::device) return move->blocks;
    return std::nullopt;
  }

  Plan plan;
  std::vector<BlockRange> homes = {{{0}, 1}, {{1}, 1}};
  std::vector<Foresight::Row> rows = {{{{0}, 1}, {{0}}}, {{{1}, 1}, {{1}}}};
  std::optional<Executor> executor;
  std::vector<Command> commands;
};

TEST(Executor, WhatNoKernelHasUsedForIterationsLeavesBeforeWhatThePlanNeeds) {
  OthersBlocks run(false);
  for (std::uint32_t kernel = 0; kernel < 6; ++kernel)
    run.kernel(kernel % 2, {{.blocks = {{2}, 1}}, {.blocks = {{4}, 1}}});
  run.tell(Faulted{{1}, {{5}, 1}});
  EXPECT_EQ(run.left(), (BlockRange{{3}, 1}));
}

TEST(Executor, WhatIsUsedByKernelsThatNoPlanKnowsIsNotIdle) {
  OthersBlocks run(false);
  for (std::uint32_t kernel = 0; kernel < 4; ++kernel) run.kernel(kernel % 2, {});
  run.kernel(kNoKernel.value, {{.blocks = {{2}, 3}}});
  run.kernel(0, {});
  run.tell(Faulted{{1}, {{5}, 1}});
  EXPECT_EQ(run.left(), (BlockRange{{1}, 1}));
}

TEST(Executor, WhatIsIdleMakesRoomForWhatThePlanBringsBack) {
  OthersBlocks run(true);
  for (std::uint32_t kernel = 0; kernel < 4; ++kernel) run.kernel(kernel % 2, {});
  EXPECT_EQ(run.left(), std::nullopt);
  run.kernel(0, {});
  ASSERT_EQ(run.left(), (BlockRange{{2}, 1}));
  EXPECT_EQ(std::get<Move>(run.commands.back()).urgency, Urgency::plan);
  run.tell(MoveDone{std::get<Move>(run.commands.back()).id});
  EXPECT_EQ(run.state(0), BlockState::arriving);
}

// What the script has locked cannot leave.
TEST(Executor, WhatIsNeededLastAndCannotLeaveIsNotTriedForEver) {
  OthersBlocks run(false);
  run.kernel(0, {});
  run.tell(Faulted{{1}, {{5}, 1}});
  ASSERT_EQ(run.left(), (BlockRange{{1}, 1}));
  run.tell(MoveFailed{std::get<Move>(run.commands.back()).id, true});
  EXPECT_EQ(run.state(1), BlockState::resident);
  EXPECT_EQ(std::get<Move>(run.commands.back()).blocks, (BlockRange{{2}, 1}));
}

// Two tensors of one block are to leave, one after the other, and a kernel cannot wait for the second one's turn.
TEST(Executor, WhatThePlanHasAskedToLeaveIsTheFirstVictimAndGoesWhereThePlanWants) {
  Plan plan;
  for (std::uint32_t tensor = 1; tensor < 3; ++tensor) plan.evictions.push_back({{tensor}, {0}, Tier::ssd});
  PageTable table({kBlockBytes * 4, kBlockBytes * 4, kBlockBytes * 8});
  table.add_blocks(6, kBlockBytes);
  for (std::uint32_t block = 0; block < 6; ++block) table.place({block}, block < 4 ? Tier::device : Tier::ssd);
  Executor executor(std::move(table), {.migration = {.piece_blocks = 1}});
  executor.adopt(plan, 2);
  std::vector<Command> commands;
  for (std::uint32_t tensor = 0; tensor < 6; ++tensor) executor.on(Allocated{{tensor}, {{tensor}, 1}}, commands);
  executor.on(KernelReady{{0}, {0}, {}}, commands);
  executor.on(KernelDone{{0}}, commands);
  commands.clear();
  for (std::uint32_t block = 4; block < 6; ++block) executor.on(Faulted{{1}, {{block}, 1}}, commands);
  ASSERT_EQ(commands.size(), 1u) << "the first one is on its way since the kernel has ended";
  EXPECT_EQ(std::get<Move>(commands.front()).blocks, (BlockRange{{2}, 1}));
  EXPECT_EQ(std::get<Move>(commands.front()).to, Tier::ssd);
}

// One tensor of four blocks, and then four of one block each.
TEST(Executor, NoPlannedMoveStartsWithSoManyBlocksInFlight) {
  Plan plan;
  for (std::uint32_t tensor = 0; tensor < 5; ++tensor) plan.prefetches.push_back({{tensor}, {0}});
  PageTable table({kBlockBytes * 20, {}, kBlockBytes * 20});
  table.add_blocks(8, kBlockBytes);
  for (std::uint32_t block = 0; block < 8; ++block) table.place({block}, Tier::ssd);
  Executor executor(std::move(table), {.migration = {.piece_blocks = 4, .planned_in_flight = 2}});
  executor.adopt(plan, 1);
  std::vector<Command> commands;
  executor.on(Allocated{{0}, {{0}, 4}}, commands);
  for (std::uint32_t tensor = 1; tensor < 5; ++tensor) executor.on(Allocated{{tensor}, {{tensor + 3}, 1}}, commands);
  executor.on(KernelReady{{0}, {0}, {}}, commands);
  ASSERT_EQ(commands.size(), 2u);  // One of them launches the kernel.
  executor.on(MoveDone{std::get<Move>(commands.back()).id}, commands);
  EXPECT_EQ(commands.size(), 4u);
}

}  // namespace
}  // namespace spillway
