#include "runtime/tensor_costs.h"

#include <gtest/gtest.h>

#include <array>

namespace spillway {
namespace {

TensorCost cost(std::uint64_t label, Bytes bytes, Bytes moved, Bytes waited_for = {}) {
  return {.label = {label}, .maker = "aten::mm", .bytes = bytes, .moved = {.all = moved, .waited_for = waited_for}};
}

TEST(TensorCosts, ThoseThatPlayTheSamePartAreOne) {
  TensorCosts costs;
  costs.died(cost(1, 4_MiB, 10_MiB, 2_MiB));
  costs.died(cost(2, 8_MiB, 15_MiB));
  costs.died(cost(1, 6_MiB, 3_MiB));
  const std::array alive{cost(1, 4_MiB, 7_MiB, 1_MiB), cost(3, 2_MiB, 1_MiB)};
  const auto two = costs.highest(2, alive);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].label.value, 1u);
  EXPECT_EQ(two[0].bytes, 6_MiB);
  EXPECT_EQ(two[0].moved, (MovedBytes{.all = 20_MiB, .waited_for = 3_MiB}));
  EXPECT_EQ(two[1].label.value, 2u);
  EXPECT_EQ(costs.highest(2, {})[0].label.value, 2u) << "what lives is counted by who asks";
}

TEST(TensorCosts, WhatHasNotMovedCostsNothing) {
  TensorCosts costs;
  costs.died(cost(1, 4_MiB, {}));
  const std::array alive{cost(2, 4_MiB, {})};
  EXPECT_TRUE(costs.highest(3, alive).empty());
}

TEST(TensorCosts, OfTooManyTheDearestAreKept) {
  TensorCosts costs;
  costs.died(cost(1, 4_MiB, 100_GiB));
  for (std::uint64_t label = 2; label < 200'000; ++label) costs.died(cost(label, 4_MiB, Bytes{1 + label % 7}));
  EXPECT_EQ(costs.highest(1, {})[0].label.value, 1u);
  EXPECT_LT(costs.highest(1'000'000, {}).size(), 100'000u);
}

}  // namespace
}  // namespace spillway
