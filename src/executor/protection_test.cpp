#include "executor/protection.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

constexpr StreamId kStream{0}, kOther{1};

struct ProtectionTest : testing::Test {
  ProtectionTest() { table.add_blocks(8, kBlockBytes); }
  void expect(std::uint32_t block, StreamId stream = kStream) { protection.expect(stream, {{{block}, 1}}); }
  bool pinned(std::uint32_t block) const { return table.pinned({block}); }

  PageTable table{{kBlockBytes * 8, {}, {}}};
  Protection protection{table, {.window_blocks = 2}};
};

TEST_F(ProtectionTest, WhatIsExpectedStaysUntilItsKernelHasCome) {
  expect(1);
  expect(2);
  EXPECT_TRUE(pinned(1) && pinned(2));
  protection.came(kStream, false);
  EXPECT_TRUE(!pinned(1) && pinned(2));
  protection.came(kStream, true);
  EXPECT_FALSE(pinned(2));
}

TEST_F(ProtectionTest, RelaxingTakesWhatIsExpectedLastAndKeepsTheOrder) {
  expect(1);
  expect(2);
  EXPECT_TRUE(protection.relax(kStream));
  EXPECT_TRUE(pinned(1) && !pinned(2));
  expect(3);
  protection.came(kStream, false);  // that of 1
  EXPECT_TRUE(!pinned(1) && pinned(3));
  protection.came(kStream, false);  // that of 2
  EXPECT_TRUE(pinned(3));
  EXPECT_TRUE(protection.relax(kStream));
  EXPECT_FALSE(pinned(3));
  EXPECT_FALSE(protection.relax(kStream));
}

TEST_F(ProtectionTest, WhatALaunchNeedsOutlivesTheGrantOfItsKernel) {
  for (const bool waits_for_all : {false, true}) {
    PageTable blocks({kBlockBytes * 8, {}, {}});
    blocks.add_blocks(8, kBlockBytes);
    Protection mine(blocks, {.window_blocks = 8, .waits_for_all = waits_for_all});
    ASSERT_TRUE(mine.grant({kStream, 1}, {{{0}, 2}}));
    mine.faulted_in(kStream, {{4}, 1});
    mine.faulted_in(kStream, {{5}, 1});
    EXPECT_TRUE(mine.relax(kStream));
    EXPECT_EQ(blocks.pinned({0}), !waits_for_all);
    EXPECT_EQ(blocks.pinned({4}), waits_for_all);
    EXPECT_TRUE(blocks.pinned({5}));
  }
}

TEST_F(ProtectionTest, WhatAStreamHasFaultedInLastStays) {
  for (const std::uint32_t block : {1u, 2u, 1u, 3u}) protection.faulted_in(kStream, {{block}, 1});
  EXPECT_TRUE(pinned(1) && !pinned(2) && pinned(3));
  protection.faulted_in(kOther, {{3}, 1});
  protection.begins_anew(kStream);
  EXPECT_TRUE(!pinned(1) && pinned(3));
}

// A claim's blocks cannot leave. Were they chosen again and again, what can leave would never be.
TEST_F(ProtectionTest, WhatTheMachineDoesNotLetLeaveIsProtectedAgain) {
  protection.begins_anew(kStream);
  protection.faulted_in(kStream, {{1}, 1});
  EXPECT_TRUE(protection.relax(kOther));
  EXPECT_FALSE(pinned(1));
  protection.refused({1});
  EXPECT_TRUE(pinned(1));
  protection.begins_anew(kOther);
  EXPECT_TRUE(pinned(1)) << "it may still be needed";
  protection.begins_anew(kStream);
  EXPECT_FALSE(pinned(1));
}

TEST_F(ProtectionTest, AStreamThatRunsNothingMoreExpectsNothingForEver) {
  expect(1, kOther);
  for (int kernel = 0; kernel < 300; ++kernel) protection.revoke({kStream});
  EXPECT_FALSE(pinned(1));
}

TEST_F(ProtectionTest, AStreamThatGoesOnAfterAllKeepsTheOrderOfWhatItExpects) {
  expect(1, kOther);
  expect(2, kOther);
  for (int kernel = 0; kernel < 300; ++kernel) protection.revoke({kStream});
  protection.came(kOther, false);  // that of 1
  expect(3, kOther);
  protection.came(kOther, false);  // that of 2
  EXPECT_TRUE(pinned(3));
  protection.came(kOther, false);
  EXPECT_FALSE(pinned(3));
}

}  // namespace
}  // namespace spillway
