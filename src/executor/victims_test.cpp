#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "executor/executor_script.h"

namespace spillway {
namespace {

// Three blocks, of which the device has room for two: 0 and 1 are there and live.
struct MakesSomething {
  explicit MakesSomething(std::vector<std::vector<BlockRange>> made_by_kernel)
      : executor(table_of("dd-", {2, 0, 10}), {.migration = {.keep_dead_blocks = true}}) {
    adopt(executor, {}, 3, {{{0}, 1}, {{1}, 1}, {{2}, 1}}, {}, std::move(made_by_kernel));
    for (const std::uint32_t block : {0u, 1u}) tell(Allocated{{block}, {{block}, 1}});
  }
  std::vector<Command> tell(const Event& event) {
    std::vector<Command> commands;
    executor.on(event, commands);
    return commands;
  }

  Executor executor;
};

TEST(Victims, NothingThatThePlanKeepsLeavesForWhatLaterKernelsMake) {
  MakesSomething run({{}, {}, {{{2}, 1}}});
  for (const std::uint32_t kernel : {0u, 1u}) {
    EXPECT_EQ(run.tell(KernelReady{{{0}}, {kernel}, {}}).size(), 1u) << "the launch";
    run.tell(KernelDone{{{0}}});
  }
  const std::vector<Command> commands = run.tell(KernelReady{{{0}}, {2}, {}});
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Move>(commands[1]));
}

TEST(Victims, WhatDiedWhereAKernelIsAboutToMakeSomethingLeavesItsFrameThere) {
  MakesSomething run({{{{2}, 1}}, {{{0}, 1}}, {}});
  Executor& executor = run.executor;
  run.tell(Freed{{0}, {{0}, 1}});
  std::vector<Command> commands = run.tell(KernelReady{{{0}}, {0}, {}});
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Launch>(commands[0]));
  ASSERT_TRUE(std::holds_alternative<Move>(commands[1]));
  EXPECT_EQ(std::get<Move>(commands[1]).blocks, (BlockRange{{1}, 1}));
  EXPECT_EQ(executor.table().state({0}), BlockState::resident);
  for (std::uint32_t kernel = 0; kernel < Executor::kPatience; ++kernel) {
    EXPECT_EQ(executor.table().state({0}), BlockState::resident) << kernel;
    executor.on(KernelDone{{{0}}}, commands);
    executor.on(KernelReady{{{0}}, kNoKernel, {}}, commands);
  }
  EXPECT_EQ(executor.table().state({0}), BlockState::empty) << "the script does something else";
}

// A plan of two kernels that use blocks 0 and 1, or bring them back, and three blocks of which it knows nothing.
struct OthersBlocks : ExecutorScript {
  explicit OthersBlocks(bool brings_back)
      : ExecutorScript("sdddd-", {4, 0, 10}, {.window_blocks = 1, .migration = {.chunk_blocks = 1}}) {
    Plan plan;
    if (brings_back) plan.prefetches = {{{0}, {0}}};
    allocate(0, 6);
    adopt(executor, plan, 2, {{{0}, 1}, {{1}, 1}}, {{{{0}, 1}, {{0}}}, {{{1}, 1}, {{1}}}});
  }
  void kernel(std::uint32_t kernel, std::vector<BlockAccess> accesses) {
    tell(KernelReady{{{0}}, {kernel}, accesses});
    tell(KernelDone{{{0}}});
  }
  // The first that has left the device.
  std::optional<BlockRange> left() const {
    for (const Move& move : moves())
      if (move.from == Tier::device) return move.blocks;
    return std::nullopt;
  }
};

TEST(Victims, WhatNoKernelHasUsedForIterationsLeavesBeforeWhatThePlanNeeds) {
  OthersBlocks run(false);
  for (std::uint32_t kernel = 0; kernel < 6; ++kernel)
    run.kernel(kernel % 2, {{.blocks = {{2}, 1}}, {.blocks = {{4}, 1}}});
  run.tell(Faulted{{1}, {{5}, 1}});
  EXPECT_EQ(run.left(), (BlockRange{{3}, 1}));
}

TEST(Victims, WhatIsUsedByKernelsThatNoPlanKnowsIsNotIdle) {
  OthersBlocks run(false);
  for (std::uint32_t kernel = 0; kernel < 4; ++kernel) run.kernel(kernel % 2, {});
  run.kernel(kNoKernel.value, {{.blocks = {{2}, 3}}});
  run.kernel(0, {});
  run.tell(Faulted{{1}, {{5}, 1}});
  EXPECT_EQ(run.left(), (BlockRange{{1}, 1}));
}

TEST(Victims, WhatIsIdleMakesRoomForWhatThePlanBringsBack) {
  OthersBlocks run(true);
  for (std::uint32_t kernel = 0; kernel < 4; ++kernel) run.kernel(kernel % 2, {});
  EXPECT_EQ(run.left(), std::nullopt);
  run.kernel(0, {});
  ASSERT_EQ(run.left(), (BlockRange{{2}, 1}));
  EXPECT_EQ(run.last_move().urgency, Urgency::plan);
  run.tell(MoveDone{run.last_move().id});
  EXPECT_EQ(run.state(0), BlockState::arriving);
}

// What the script has locked cannot leave.
TEST(Victims, WhatIsNeededLastAndCannotLeaveIsNotTriedForEver) {
  OthersBlocks run(false);
  run.kernel(0, {});
  run.tell(Faulted{{1}, {{5}, 1}});
  ASSERT_EQ(run.left(), (BlockRange{{1}, 1}));
  run.tell(MoveFailed{run.last_move().id, true});
  EXPECT_EQ(run.state(1), BlockState::resident);
  EXPECT_EQ(run.last_move().blocks, (BlockRange{{2}, 1}));
}

// Two tensors of one block are to leave, one after the other, and a kernel cannot wait for the second one's turn.
TEST(Victims, WhatThePlanHasAskedToLeaveIsTheFirstVictimAndGoesWhereThePlanWants) {
  Plan plan;
  for (std::uint32_t tensor = 1; tensor < 3; ++tensor) plan.evictions.push_back({{tensor}, {0}, Tier::ssd});
  ExecutorScript run("ddddss", {4, 4, 8}, {.migration = {.chunk_blocks = 1}});
  adopt(run.executor, plan, 2);
  run.allocate(0, 6);
  run.tell(KernelReady{{{0}}, {0}, {}});
  run.tell(KernelDone{{{0}}});
  run.commands.clear();
  for (std::uint32_t block = 4; block < 6; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  ASSERT_EQ(run.commands.size(), 1u) << "the first one is on its way since the kernel has ended";
  EXPECT_EQ(run.last_move().blocks, (BlockRange{{2}, 1}));
  EXPECT_EQ(run.last_move().to, Tier::ssd);
}

// Three frames, four blocks that a plan knows of, and one more whose dead frame could not be dropped once.
TEST(Victims, WhatIsDeadAndCouldNotBeDroppedTakesItsTurn) {
  std::vector<BlockRange> homes;
  std::vector<Foresight::Row> rows;
  for (std::uint32_t block = 0; block < 4; ++block) {
    homes.push_back({{block}, 1});
    rows.push_back({.blocks = {{block}, 1}, .uses = {{block}}});
  }
  Executor executor(table_of("ssss-", {3, 0, 8}), {.window_blocks = 1, .migration = {.keep_dead_blocks = true}});
  adopt(executor, {}, 4, homes, rows, {});
  const auto tell = [&](const Event& event) {
    std::vector<Command> commands;
    executor.on(event, commands);
    for (std::size_t at = 0; at < commands.size(); ++at)
      if (const auto* move = std::get_if<Move>(&commands[at])) executor.on(MoveDone{move->id}, commands);
  };
  for (std::uint32_t block = 0; block < 4; ++block) tell(Allocated{{block}, {{block}, 1}});
  tell(Faulted{kNobody, {{4}, 1}});
  EXPECT_EQ(executor.table().state({4}), BlockState::resident);
  for (std::uint32_t kernel = 0; kernel < 8; ++kernel) {
    const BlockAccess access{.blocks = {{kernel % 4}, 1}};
    tell(KernelReady{{{0}}, {kernel % 4}, std::span(&access, 1)});
    tell(KernelDone{{{0}}});
  }
  EXPECT_EQ(executor.table().state({4}), BlockState::empty);
}

// Four frames: a block leaves for the plan while a dead one's frame lies there.
TEST(Victims, WhatIsDeadGivesItsFrameAtOnceThoughOthersAreLeaving) {
  Plan plan;
  plan.evictions = {{{0}, {0}, Tier::ssd}};
  const std::vector<BlockRange> homes = {{{0}, 1}, {{1}, 1}, {{2}, 1}, {{3}, 1}, {{4}, 1}};
  const std::vector<std::vector<BlockRange>> births = {{}, {}, {}, {{{4}, 1}}};
  for (const bool is_born : {true, false}) {
    ExecutorScript run(is_born ? "dddd-" : "dddds", {4, 0, 8}, {.migration = {.keep_dead_blocks = true}});
    adopt(run.executor, plan, 4, homes, {}, births);
    run.allocate(0, is_born ? 4 : 5);
    run.tell(Freed{{3}, {{3}, 1}});
    run.tell(KernelReady{{{0}}, {0}, {}});
    run.tell(KernelDone{{{0}}});
    EXPECT_EQ(run.state(0), BlockState::leaving);
    run.tell(is_born ? Event(KernelReady{{{0}}, {1}, {}}) : Event(Faulted{{0}, {{4}, 1}}));
    EXPECT_EQ(run.state(3), BlockState::empty) << is_born;
    EXPECT_EQ(run.state(4), is_born ? BlockState::resident : BlockState::arriving);
  }
}

}  // namespace
}  // namespace spillway
