#include "executor/foresight.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway {
namespace {

// Blocks 0 to 3, of which each is used by some of four kernels.
struct FourBlocks : testing::Test {
  FourBlocks() : foresight(rows, 4) {
    table.add_blocks(5, kBlockBytes);
    for (std::uint32_t block = 0; block < 5; ++block) {
      table.retain({block});
      table.populate({block});
    }
  }
  void run(std::uint32_t kernel) { foresight.passed({kernel}); }

  std::vector<Foresight::Row> rows{{{{0}, 1}, {{0}}}, {{{1}, 1}, {{1}, {3}}}, {{{2}, 2}, {{2}}}};
  PageTable table{{kBlockBytes * 8, kBlockBytes * 8, {}}};
  Foresight foresight;
};

TEST_F(FourBlocks, WhatIsUsedLastLeaves) {
  EXPECT_EQ(foresight.victim(table), BlockId{2});
  run(0);
  EXPECT_EQ(foresight.victim(table), BlockId{0});  // in the next iteration
  run(1);
  run(2);
  EXPECT_EQ(foresight.victim(table), BlockId{2});
  run(3);
  run(0);
  EXPECT_EQ(foresight.victim(table), BlockId{0});
}

TEST_F(FourBlocks, WhoseKernelWasLeftOutIsUsedInTheNextIteration) {
  for (const std::uint32_t kernel : {0u, 1u, 3u}) run(kernel);
  EXPECT_EQ(foresight.victim(table), BlockId{2});
  run(2);  // of the next one
  table.pin({2});
  table.pin({3});
  EXPECT_EQ(foresight.victim(table), BlockId{0});
}

TEST_F(FourBlocks, WhatIsPinnedDeadOrAwayIsPassedOver) {
  table.pin({2});
  EXPECT_EQ(foresight.victim(table), BlockId{3});
  table.evict({3}, Tier::host);
  EXPECT_EQ(foresight.victim(table), BlockId{1});
  table.release({1});
  EXPECT_EQ(foresight.victim(table), std::nullopt);  // Of block 4 nothing is known, and block 0 is in use.
  run(0);
  EXPECT_EQ(foresight.victim(table), BlockId{0});
  table.pin({0});
  EXPECT_EQ(foresight.victim(table), std::nullopt);
}

TEST_F(FourBlocks, WhatTheRunningKernelUsesIsLeftToThePageTable) {
  table.pin({0});
  for (std::uint32_t iteration = 0; iteration < 2; ++iteration) {
    for (const std::uint32_t kernel : {0u, 1u}) run(kernel);
    EXPECT_EQ(foresight.victim(table), BlockId{1});  // Kernel 2 uses the others.
    table.pin({1});
    EXPECT_EQ(foresight.victim(table), std::nullopt);
    table.unpin({1});
    for (const std::uint32_t kernel : {2u, 3u}) run(kernel);
  }
}

TEST_F(FourBlocks, WhatComesBackOrToLifeAgainMayLeaveAgain) {
  for (const std::uint32_t block : {2u, 3u}) {
    table.evict({block}, Tier::host);
    table.evicted({block});
  }
  run(3);
  table.release({1});
  EXPECT_EQ(foresight.victim(table), std::nullopt);
  foresight.used({{1}, 1});
  table.retain({1});
  EXPECT_EQ(foresight.victim(table), BlockId{1});
  table.pin({1});
  table.fetch({3});
  foresight.used({{3}, 1});
  EXPECT_EQ(foresight.victim(table), std::nullopt);  // It is on its way.
  table.fetched({3});
  EXPECT_EQ(foresight.victim(table), BlockId{3});
}

TEST_F(FourBlocks, OfTheDeadOneThatNoPlanKnowsOfGoesFirstAndThenTheOneThatLivesAgainLast) {
  const auto die = [&](std::uint32_t block) {
    table.release({block});
    foresight.died({block});
  };
  run(0);
  for (const std::uint32_t block : {1u, 0u, 2u}) die(block);
  EXPECT_EQ(foresight.dead(table), BlockId{0});  // in the next iteration
  run(1);
  run(2);
  EXPECT_EQ(foresight.dead(table), BlockId{2});
  table.hold({2});
  EXPECT_EQ(foresight.dead(table), BlockId{0});
  table.drop({0});
  EXPECT_EQ(foresight.dead(table), BlockId{1});
  table.retain({1});
  EXPECT_EQ(foresight.dead(table), std::nullopt);
  for (const std::uint32_t block : {4u, 1u}) die(block);
  EXPECT_EQ(foresight.dead(table), BlockId{4});
}

TEST_F(FourBlocks, WhatCouldNotLeaveIsPassedOverUntilTheIterationIsOver) {
  foresight.stayed({{2}, 2});
  EXPECT_EQ(foresight.victim(table), BlockId{1});
  for (const std::uint32_t kernel : {1u, 2u, 3u, 0u, 1u, 2u}) run(kernel);
  EXPECT_EQ(foresight.victim(table), BlockId{2});
}

TEST_F(FourBlocks, WhatNoPlanKnowsIsIdleOnceNobodyHasUsedItForTwoIterations) {
  foresight.used({{0}, 5});
  for (std::uint32_t kernel = 0; kernel < 8; ++kernel) run(kernel % 4);
  EXPECT_EQ(foresight.idle(table), std::nullopt);
  run(0);
  EXPECT_EQ(foresight.idle(table), BlockId{4});
  foresight.used({{4}, 1});
  EXPECT_EQ(foresight.idle(table), std::nullopt);
  foresight.check_invariants();
}

TEST_F(FourBlocks, WhatIsIdleAndCannotLeaveIsPassedOver) {
  table.add_blocks(1, kBlockBytes);
  table.retain({5});
  table.populate({5});
  foresight.used({{4}, 2});
  for (std::uint32_t kernel = 0; kernel < 12; ++kernel) run(kernel % 4);
  table.pin({4});
  EXPECT_EQ(foresight.idle(table), BlockId{5});
  table.evict({5}, Tier::host);
  EXPECT_EQ(foresight.idle(table), std::nullopt);
  foresight.check_invariants();
  table.unpin({4});
  EXPECT_EQ(foresight.idle(table), BlockId{4});
  foresight.stayed({{4}, 1});
  EXPECT_EQ(foresight.idle(table), std::nullopt);
  for (std::uint32_t kernel = 0; kernel < 12; ++kernel) run(kernel % 4);
  EXPECT_EQ(foresight.idle(table), BlockId{4});
  table.evicted({5});
  table.fetch({5});
  foresight.used({{5}, 1});  // It is back.
  table.fetched({5});
  table.release({4});
  EXPECT_EQ(foresight.idle(table), std::nullopt);
  for (std::uint32_t kernel = 0; kernel < 12; ++kernel) run(kernel % 4);
  EXPECT_EQ(foresight.idle(table), BlockId{5});
}

TEST_F(FourBlocks, KernelsOfOtherProgramsMeanNothing) {
  foresight.passed(kNoKernel);
  EXPECT_EQ(foresight.victim(table), BlockId{2});
}

}  // namespace
}  // namespace spillway
