#include "machines/sim/faults.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway {
namespace {

constexpr FaultRates kFaults{.latency = Nanos{45'000}, .cost = {}};
// 2 MiB over PCIe 3 x16, 15.754 GB/s: 133.1 us.
constexpr Nanos kLink = transfer_time(2_MiB, BytesPerSecond{15'754'000'000});

Nanos time_of_block(const FaultRates& rates) { return std::max(kLink, rates.time(rates.faults_of(2_MiB))); }

// 2 MiB have 32 granules of 64 KiB. One after the other: 32 x 45 us = 1440 us.
TEST(Faults, ABlockFaultsOnceForEachGranule) { EXPECT_EQ(time_of_block(kFaults), Nanos{1'440'000}); }

// The first brings one granule, the next ones 1, 2, 4, 8 and 16 more: log2 32 + 1 = 6 faults, 6 x 45 us = 270 us.
TEST(Faults, WidenedABlockFaultsOnceForEachDoubling) {
  FaultRates rates = kFaults;
  rates.widen = true;
  EXPECT_EQ(time_of_block(rates), Nanos{270'000});
}

// All 32 in one batch take 45 us, and the link takes longer.
TEST(Faults, OneBatchIsFasterThanTheLink) {
  FaultRates rates = kFaults;
  rates.batch = 32;
  EXPECT_EQ(rates.time(rates.faults_of(2_MiB)), Nanos{45'000});
  EXPECT_EQ(time_of_block(rates), kLink);
  EXPECT_EQ(kLink.value / 1000, 133u);
}

TEST(Faults, WhatIsNoPowerOfTwoIsRoundedUp) {
  FaultRates rates = kFaults;
  rates.widen = true;
  EXPECT_EQ(rates.faults_of(Bytes{1}), 1u);
  EXPECT_EQ(rates.faults_of(128_KiB), 2u);
  EXPECT_EQ(rates.faults_of(192_KiB), 3u);
  EXPECT_EQ(rates.faults_of(Bytes{(128 << 10) + 1}), 3u);
  EXPECT_EQ(rates.faults_of(320_KiB), 4u);
}

TEST(Faults, LatencyIsForBatchesAndCostForFaults) {
  const FaultRates rates{.latency = Nanos{100}, .cost = Nanos{1}, .batch = 10};
  EXPECT_EQ(rates.time(10), Nanos{110});
  EXPECT_EQ(rates.time(11), Nanos{211});
}

}  // namespace
}  // namespace spillway
