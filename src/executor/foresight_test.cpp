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

TEST_F(FourBlocks, WhatIsPinnedDeadOrAwayIsPassedOver) {
  table.pin({2});
  EXPECT_EQ(foresight.victim(table), BlockId{3});
  table.evict({3}, Tier::host);
  EXPECT_EQ(foresight.victim(table), BlockId{1});
  table.release({1});
  EXPECT_EQ(foresight.victim(table), BlockId{0});
  table.pin({0});
  EXPECT_EQ(foresight.victim(table), std::nullopt);  // of block 4 nothing is known
}

TEST_F(FourBlocks, KernelsOfOtherProgramsMeanNothing) {
  foresight.passed(kNoKernel);
  EXPECT_EQ(foresight.victim(table), BlockId{2});
}

}  // namespace
}  // namespace spillway
