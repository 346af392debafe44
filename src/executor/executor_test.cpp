#include "executor/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "executor/executor_script.h"

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

TEST(Executor, AnArrivalThatIsRefusedIsAskedForAgainAfterWhatIsWantedAsMuch) {
  PageTable table({kBlockBytes, {}, kBlockBytes * 10});
  table.add_blocks(2, kBlockBytes);
  table.place({0}, Tier::ssd);
  Executor executor(std::move(table), {});
  std::vector<Command> commands;
  for (const std::uint32_t tensor : {0u, 1u}) executor.on(Allocated{{tensor}, {{tensor}, 1}}, commands);
  executor.on(Faulted{{0}, {{0}, 1}}, commands);
  executor.on(Faulted{kNobody, {{1}, 1}}, commands);
  executor.on(MoveFailed{std::get<Move>(commands.back()).id, true}, commands);
  const auto populated =
      std::ranges::find_if(commands, [](const Command& one) { return std::holds_alternative<Populate>(one); });
  ASSERT_TRUE(populated != commands.end());
  EXPECT_EQ(std::get<Populate>(*populated).blocks, (BlockRange{{1}, 1}));
  executor.on(MoveDone{std::get<Move>(commands.back()).id}, commands);
  for (int times = 0; times < 20; ++times) executor.on(MoveFailed{std::get<Move>(commands.back()).id, true}, commands);
  EXPECT_EQ(std::get<Move>(commands.back()).blocks, (BlockRange{{0}, 1}));
  EXPECT_FALSE(executor.failure());
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
    executor.on(KernelReady{{{1}}, kNoKernel, {}}, commands);
    executor.on(KernelDone{{{1}}}, commands);
  }
  EXPECT_TRUE(executor.table().pinned({0}));
  executor.on(MoveDone{second}, commands);
  for (int kernel = 0; kernel < 40; ++kernel) {
    executor.on(KernelReady{{{1}}, kNoKernel, {}}, commands);
    executor.on(KernelDone{{{1}}}, commands);
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
  adopt(executor, plan, 2);
  std::vector<Command> commands;
  const auto tell = [&](const Event& event) { executor.on(event, commands); };
  for (const std::uint32_t tensor : {0u, 1u}) tell(Allocated{{tensor}, {{tensor}, 1}});
  tell(KernelReady{{{0}}, {0}, {}});
  tell(KernelDone{{{0}}});
  const Move first = std::get<Move>(commands.back());
  EXPECT_EQ(first.blocks.first, BlockId{0});
  tell(Freed{{1}, {{1}, 1}});
  tell(Allocated{{2}, {{1}, 1}});
  commands.clear();
  tell(MoveDone{first.id});
  EXPECT_TRUE(std::ranges::none_of(commands, [](const Command& one) { return std::holds_alternative<Move>(one); }));
}

// Two tensors of one block that a plan brings back when kernel 0 starts, the second one once the first has come.
struct TwoPrefetches : ExecutorScript {
  TwoPrefetches() {
    plan.prefetches = {{{0}, {0}}, {{1}, {0}}};
    plan.evictions = {{{1}, {1}, Tier::ssd}};
    PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
    table.add_blocks(2, kBlockBytes);
    for (const std::uint32_t block : {0u, 1u}) table.place({block}, Tier::ssd);
    executor.emplace(std::move(table), ExecutorOptions{});
    adopt(*executor, plan, 2);
    for (const std::uint32_t tensor : {0u, 1u}) tell(Allocated{{tensor}, {{tensor}, 1}});
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
  PageTable table({kBlockBytes * 20, {}, kBlockBytes * 20});
  table.add_blocks(8, kBlockBytes);
  for (std::uint32_t block = 0; block < 8; ++block) table.place({block}, Tier::ssd);
  Executor executor(std::move(table), {.migration = {.piece_blocks = 4, .planned_in_flight = 2}});
  adopt(executor, plan, 1);
  std::vector<Command> commands;
  executor.on(Allocated{{0}, {{0}, 4}}, commands);
  for (std::uint32_t tensor = 1; tensor < 5; ++tensor) executor.on(Allocated{{tensor}, {{tensor + 3}, 1}}, commands);
  executor.on(KernelReady{{{0}}, {0}, {}}, commands);
  ASSERT_EQ(commands.size(), 2u);  // One of them launches the kernel.
  executor.on(MoveDone{std::get<Move>(commands.back()).id}, commands);
  EXPECT_EQ(commands.size(), 4u);
}

}  // namespace
}  // namespace spillway
