#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "executor/executor_script.h"

namespace spillway {
namespace {

// Kernels that cannot fault. Six blocks, each with a tensor; the device has room for four of them, and holds them.
struct Launches : testing::Test {
  Launches() {
    for (std::uint32_t block = 0; block < 6; ++block) tell(Allocated{{block}, {{block}, 1}});
  }
  void ready(LaunchId launch, BlockRange blocks) {
    const BlockAccess access{.blocks = blocks, .writes = true};
    tell(KernelReady{launch, kNoKernel, std::span(&access, 1)});
  }
  // Ends all moves, and what they lead to.
  void tell(const Event& event) {
    std::vector<Command> commands;
    executor.on(event, commands);
    for (const Command& command : commands) {
      if (const auto* launch = std::get_if<Launch>(&command)) launched.push_back(launch->launch);
      if (const auto* move = std::get_if<Move>(&command)) tell(MoveDone{move->id});
    }
  }

  static constexpr LaunchId kFirst{{0}, 1}, kSecond{{0}, 2}, kOther{{1}, 1};
  Executor executor{table_of("ddddss", {4, 0, 10}), {.kernels_fault = false, .migration = {.chunk_blocks = 1}}};
  std::vector<LaunchId> launched;
};

TEST_F(Launches, SeveralOfAStreamAreInFlightOnceTheOneBeforeIsQueued) {
  ready(kFirst, {{0}, 2});
  tell(KernelQueued{kFirst});
  ready(kSecond, {{2}, 2});
  EXPECT_EQ(launched, (std::vector{kFirst, kSecond}));
  tell(KernelDone{kFirst});
  tell(KernelDone{kSecond});
  EXPECT_FALSE(executor.failure());
}

TEST_F(Launches, WhatAKernelInFlightUsesStaysUntilItIsDone) {
  ready(kFirst, {{0}, 3});
  tell(KernelQueued{kFirst});
  ready(kSecond, {{4}, 2});  // There is room for one of them.
  EXPECT_EQ(launched, std::vector{kFirst});
  for (const std::uint32_t block : {0u, 1u, 2u}) EXPECT_EQ(executor.table().state({block}), BlockState::resident);
  tell(KernelDone{kFirst});
  EXPECT_EQ(launched, (std::vector{kFirst, kSecond}));
}

TEST_F(Launches, BlocksThatSeveralUseCountOnce) {
  ready(kFirst, {{0}, 3});
  tell(KernelQueued{kFirst});
  ready(kSecond, {{0}, 4});
  EXPECT_EQ(launched, (std::vector{kFirst, kSecond}));
}

TEST_F(Launches, ASmallKernelDoesNotStarveALargeOne) {
  ready(kFirst, {{0}, 3});
  tell(KernelQueued{kFirst});
  ready(kSecond, {{2}, 3});
  ready(kOther, {{1}, 1});  // It would fit, but came later.
  EXPECT_EQ(launched, std::vector{kFirst});
  tell(KernelDone{kFirst});
  EXPECT_EQ(launched.size(), 3u);
}

TEST_F(Launches, WhatNeverFitsIsAFailureThatSaysByHowMuch) {
  ready(kFirst, {{0}, 6});
  ASSERT_TRUE(executor.failure());
  EXPECT_EQ(executor.failure()->kind, Failure::Kind::device_too_small);
  EXPECT_EQ(executor.failure()->bytes, kBlockBytes * 2);
  EXPECT_TRUE(launched.empty());
}

TEST_F(Launches, WhatNeverFitsFailsWhenAllOthersAreDone) {
  ready(kFirst, {{0}, 1});
  ready(kOther, {{0}, 5});
  EXPECT_FALSE(executor.failure());
  tell(KernelDone{kFirst});
  EXPECT_TRUE(executor.failure());
}

// A kernel that was announced before another plan was taken up has no place in that one's iteration.
TEST(Launching, AKernelSpeaksOfItsOwnPlanOnly) {
  ExecutorScript run("s", {4, 0, 10});
  run.allocate(0, 1);
  const auto plan = std::make_shared<FollowedPlan>();
  plan->id = {2};
  plan->kernels = 1;
  plan->commands.prefetches = {{{0}, {0}}};
  run.tell(Adopted{plan});
  run.tell(KernelReady{.launch = {}, .kernel = {0}, .accesses = {}, .plan = {1}});
  EXPECT_EQ(run.commands.size(), 1u) << "the launch";
  run.tell(KernelDone{});
  run.tell(KernelReady{.launch = {}, .kernel = {0}, .accesses = {}, .plan = {2}});
  ASSERT_EQ(run.commands.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Move>(run.commands[2]));
}

// A machine whose launches wait for whole blocks: it moves nothing off that the launch which waits has claimed. The
// device has room for three.
struct Claims : testing::Test {
  Claims() {
    for (std::uint32_t block = 0; block < 6; ++block) tell(Allocated{{block}, {{block}, 1}});
  }
  void tell(const Event& event) {
    std::vector<Command> commands;
    executor.on(event, commands);
    for (const Command& command : commands)
      if (const auto* move = std::get_if<Move>(&command)) moves.push_back(*move);
  }
  // True: it has come.
  bool launch(const std::vector<BlockId>& claimed) {
    for (const BlockId block : claimed) tell(Faulted{{0}, {block, 1}, block == claimed.front()});
    for (int answers = 0; !moves.empty() && answers < 100; ++answers) {
      const Move move = moves.front();
      moves.pop_front();
      const bool stays = move.from == Tier::device && std::ranges::count(claimed, move.blocks.first) > 0;
      stays ? tell(MoveFailed{move.id, true}) : tell(MoveDone{move.id});
    }
    return std::ranges::all_of(claimed, [&](BlockId block) { return on_device(executor.table().state(block)); });
  }

  Executor executor{table_of("dddsss", {3, 0, 10}),
                    {.window_blocks = 3, .migration = {.splits_blocks = false, .chunk_blocks = 1}}};
  std::deque<Move> moves;
};

// The kernel has said that it uses block 0, and what it launches needs all the others' room.
TEST_F(Claims, AllThatALaunchNeedsComesThoughItsKernelIsGrantedMore) {
  const BlockAccess access{.blocks = {{0}, 1}};
  tell(KernelReady{{{0}, 1}, kNoKernel, std::span(&access, 1), {}, false});
  EXPECT_TRUE(launch({{3}, {1}, {2}}));
  EXPECT_TRUE(launch({{4}, {3}, {5}}));
  EXPECT_TRUE(launch({{0}, {4}, {1}}));
  EXPECT_FALSE(executor.failure());
}

// Outside of kernels, too, whose ends would say so.
TEST_F(Claims, WhatALaunchNeedsStaysUntilTheNextOneOfItsStreamWaits) {
  EXPECT_TRUE(launch({{3}, {0}, {1}}));
  for (const std::uint32_t block : {3u, 0u, 1u}) EXPECT_TRUE(executor.table().pinned({block})) << block;
  tell(Faulted{{1}, {{3}, 1}, true});  // of another stream
  EXPECT_TRUE(executor.table().pinned({0}));
  tell(Faulted{{0}, {{1}, 1}, true});
  EXPECT_FALSE(executor.table().pinned({0}));
  for (const std::uint32_t block : {3u, 1u}) EXPECT_TRUE(executor.table().pinned({block})) << block;
}

}  // namespace
}  // namespace spillway
