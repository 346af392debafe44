#include "machines/cpu/children/fork_gate.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

using std::chrono::milliseconds;

TEST(ForkGate, WhatWasTakenForAForkThatGaveUpIsNotTheNextOnes) {
  ForkGate gate;
  const ForkGate::Ticket first = gate.begin();
  ASSERT_TRUE(gate.is_wanted(first));
  ASSERT_FALSE(gate.wait_for_snapshot(milliseconds(0)));
  const ForkGate::Ticket second = gate.begin();
  gate.taken_until_over(first, milliseconds(0));
  gate.refuse(first);
  EXPECT_TRUE(gate.is_wanted(second));
  EXPECT_FALSE(gate.is_closed());
}

TEST(ForkGate, TheLoopGoesOnThoughAForkIsNeverOver) {
  ForkGate gate;
  gate.taken_until_over(gate.begin(), milliseconds(0));
  EXPECT_FALSE(gate.is_closed());
}

}  // namespace
}  // namespace spillway
