#include "executor/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "executor/executor_script.h"

namespace spillway {
namespace {

TEST(Executor, ABlockThatCannotBeReadEndsTheRunThoughOthersCan) {
  ExecutorScript run("ssss", {4, 0, 10});
  run.tell(Allocated{{0}, {{0}, 4}});
  run.tell(Faulted{{0}, {{0}, 1}});
  for (std::uint32_t other = 1; !run.executor.failure(); ++other) {
    ASSERT_LE(other, 4u);
    const MoveId bad = run.last_move().id;
    if (other < 4) {
      run.tell(Faulted{{1}, {{other}, 1}});
      run.tell(MoveDone{run.last_move().id});
    }
    run.tell(MoveFailed{bad});
  }
  EXPECT_EQ(run.executor.failure()->kind, Failure::Kind::unreadable);
  EXPECT_EQ(run.executor.failure()->bytes, kBlockBytes);
}

TEST(Executor, AnArrivalThatIsRefusedIsAskedForAgainAfterWhatIsWantedAsMuch) {
  ExecutorScript run("s-", {1, 0, 10});
  run.allocate(0, 2);
  run.tell(Faulted{{0}, {{0}, 1}});
  run.tell(Faulted{kNobody, {{1}, 1}});
  run.tell(MoveFailed{run.last_move().id, true});
  const auto populated =
      std::ranges::find_if(run.commands, [](const Command& one) { return std::holds_alternative<Populate>(one); });
  ASSERT_TRUE(populated != run.commands.end());
  EXPECT_EQ(std::get<Populate>(*populated).blocks, (BlockRange{{1}, 1}));
  run.tell(MoveDone{run.last_move().id});
  for (int times = 0; times < 20; ++times) run.tell(MoveFailed{run.last_move().id, true});
  EXPECT_EQ(run.last_move().blocks, (BlockRange{{0}, 1}));
  EXPECT_FALSE(run.executor.failure());
}

TEST(Executor, WritesThatAreUnderWayTogetherFailAsOne) {
  ExecutorScript run("ddddssss", {4, 0, 10}, {.migration = {.chunk_blocks = 1}});
  run.tell(Allocated{{0}, {{0}, 8}});
  for (std::uint32_t stream = 0; stream < 4; ++stream) run.tell(Faulted{{stream}, {{4 + stream}, 1}});
  const std::vector<Move> writes = run.moves();
  ASSERT_EQ(writes.size(), 4u);
  for (const Move& write : writes) {
    run.commands.clear();
    run.tell(MoveFailed{write.id});
  }
  EXPECT_FALSE(run.moves().empty()) << "the disk may be back, and is tried";
}

// A kernel goes through what it makes block by block, and at once.
TEST(Executor, WhatIsTouchedTogetherForTheFirstTimeGetsItsFramesTogetherAsFarAsThereIsRoom) {
  ExecutorScript run("d------", {5, 0, 10});
  run.tell(Allocated{{0}, {{0}, 7}});
  run.tell(Faulted{.stream = {0}, .blocks = {{1}, 1}, .touched_next = 5});
  ASSERT_EQ(run.commands.size(), 1u);
  EXPECT_EQ(std::get<Populate>(run.commands.front()).blocks, (BlockRange{{1}, 4}));
  run.tell(Faulted{.stream = {0}, .blocks = {{5}, 1}, .touched_next = 1});
  ASSERT_EQ(run.moves().size(), 1u) << "room is made for what waits, and not for what may come";
  EXPECT_EQ(run.last_move().blocks, (BlockRange{{0}, 1}));
  run.tell(MoveDone{run.last_move().id});
  EXPECT_EQ(std::get<Populate>(run.commands.back()).blocks, (BlockRange{{5}, 1}));
}

// An instruction of one thread needs two blocks at once, while another thread runs small kernels.
TEST(Executor, AThreadThatWaitsKeepsWhatItHasFaultedInHoweverManyKernelsOthersRun) {
  ExecutorScript run("ssss", {3, 0, 10}, {.migration = {.chunk_blocks = 1}});
  const auto others_run = [&] {
    for (int kernel = 0; kernel < 40; ++kernel) {
      run.tell(KernelReady{{{1}}, kNoKernel, {}});
      run.tell(KernelDone{{{1}}});
    }
  };
  run.tell(Allocated{{0}, {{0}, 4}});
  run.tell(Faulted{{0}, {{0}, 1}});
  run.tell(MoveDone{run.last_move().id});
  run.tell(Faulted{{0}, {{1}, 1}});
  const MoveId second = run.last_move().id;
  others_run();
  EXPECT_TRUE(run.executor.table().pinned({0}));
  run.tell(MoveDone{second});
  others_run();
  EXPECT_FALSE(run.executor.table().pinned({0}));
}

TEST(Executor, AnEvictionThatWaitsIsForgottenWhenItsTensorDiesAndAnotherOneIsBornThere) {
  Plan plan;
  plan.evictions = {{{0}, {0}, Tier::ssd}, {{1}, {0}, Tier::ssd}};
  ExecutorScript run("dd", {4, 0, 10}, {.migration = {.keep_dead_blocks = true}});
  adopt(run.executor, plan, 2);
  run.allocate(0, 2);
  run.tell(KernelReady{{{0}}, {0}, {}});
  run.tell(KernelDone{{{0}}});
  const Move first = run.last_move();
  EXPECT_EQ(first.blocks.first, BlockId{0});
  run.tell(Freed{{1}, {{1}, 1}});
  run.tell(Allocated{{2}, {{1}, 1}});
  run.commands.clear();
  run.tell(MoveDone{first.id});
  EXPECT_TRUE(run.moves().empty());
}

// Two tensors of one block that a plan brings back when kernel 0 starts, the second one once the first has come.
struct TwoPrefetches : ExecutorScript {
  TwoPrefetches() : ExecutorScript("ss", {4, 0, 10}) {
    Plan plan;
    plan.prefetches = {{{0}, {0}}, {{1}, {0}}};
    plan.evictions = {{{1}, {1}, Tier::ssd}};
    adopt(executor, plan, 2);
    allocate(0, 2);
    tell(KernelReady{{{0}}, {0}, {}});
    first = last_move();
  }
  void start_kernel_1_with(std::uint32_t tensor) {
    const BlockAccess access[] = {{.blocks = {{tensor}, 1}}};
    tell(KernelDone{{{0}}});
    tell(KernelReady{{{0}}, {1}, access});
  }

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
  run.tell(KernelDone{{{0}}});
  const Move eviction = run.last_move();
  EXPECT_EQ(eviction.to, Tier::ssd);
  run.tell(MoveDone{eviction.id});
  const std::size_t before = run.commands.size();
  run.tell(MoveDone{run.first.id});
  EXPECT_EQ(run.commands.size(), before);
}

// One tensor of four blocks, and then four of one block each.
TEST(Executor, NoPlannedMoveStartsWithSoManyBlocksInFlight) {
  Plan plan;
  for (std::uint32_t tensor = 0; tensor < 5; ++tensor) plan.prefetches.push_back({{tensor}, {0}});
  ExecutorScript run("ssssssss", {20, 0, 20}, {.migration = {.chunk_blocks = 4, .planned_in_flight = 2}});
  adopt(run.executor, plan, 1);
  run.tell(Allocated{{0}, {{0}, 4}});
  for (std::uint32_t tensor = 1; tensor < 5; ++tensor) run.tell(Allocated{{tensor}, {{tensor + 3}, 1}});
  run.tell(KernelReady{{{0}}, {0}, {}});
  ASSERT_EQ(run.commands.size(), 2u);  // One of them launches the kernel.
  run.tell(MoveDone{run.last_move().id});
  EXPECT_EQ(run.commands.size(), 4u);
}

}  // namespace
}  // namespace spillway
