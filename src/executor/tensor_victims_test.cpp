#include "executor/tensor_victims.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

const auto anything = [](BlockRange) { return true; };

TEST(TensorVictims, TheLeastRecentOneThatSufficesLeaves) {
  TensorVictims victims(1_MiB);
  victims.used({{0}, 1}, 2_MiB);
  victims.used({{1}, 4}, 8_MiB);
  victims.used({{5}, 2}, 4_MiB);
  EXPECT_EQ(victims.take(3_MiB, anything), (BlockRange{{1}, 4}));
  EXPECT_EQ(victims.take(3_MiB, anything), (BlockRange{{5}, 2}));
  EXPECT_EQ(victims.take(3_MiB, anything), (BlockRange{{0}, 1})) << "none suffices, so several leave";
  EXPECT_EQ(victims.take(3_MiB, anything), std::nullopt);
}

TEST(TensorVictims, AUseMakesATensorTheMostRecentOne) {
  TensorVictims victims({});
  victims.used({{0}, 1}, 2_MiB);
  victims.used({{1}, 1}, 2_MiB);
  victims.used({{0}, 1}, 2_MiB);
  EXPECT_EQ(victims.take(1_MiB, anything), (BlockRange{{1}, 1}));
}

TEST(TensorVictims, WhatIsSmallDeadOrInUseStays) {
  TensorVictims victims(1_MiB);
  victims.used({{0}, 1}, 1_KiB);
  victims.used({{1}, 1}, 2_MiB);
  victims.used({{2}, 1}, 2_MiB);
  victims.used({{3}, 1}, 2_MiB);
  victims.gone({{1}, 1});
  EXPECT_EQ(victims.take(1_KiB, [](BlockRange blocks) { return blocks.first != BlockId{2}; }), (BlockRange{{3}, 1}));
}

}  // namespace
}  // namespace spillway
