#include "runtime/run_policy.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

std::vector<std::string_view> allowed_by(const RunPolicy& policy) {
  std::vector<std::string_view> names;
  for (const Policy& one : kPolicies)
    if (policy.allows(one)) names.push_back(one.name);
  return names;
}

TEST(RunPolicy, AutoTriesSomePlannersAndLearnsUntilThereIsAPlan) {
  const auto policy = run_policy("auto");
  ASSERT_TRUE(policy);
  EXPECT_TRUE(policy->plans() && policy->learns() && policy->chooses);
  EXPECT_TRUE(policy->without_plan->traits.keeps_copies);
  EXPECT_EQ(allowed_by(*policy), (std::vector<std::string_view>{"deepum-clean", "g10", "g10-clean", "furthest-ahead"}));
}

TEST(RunPolicy, AutoThatCannotPlanIsWhatItDoesUntilItPlans) {
  const RunPolicy policy = run_policy("auto")->unplanned();
  EXPECT_FALSE(policy.plans() || policy.chooses);
  EXPECT_TRUE(policy.learns());
  EXPECT_EQ(allowed_by(policy), std::vector{policy.name});
}

TEST(RunPolicy, OneOfTheTableIsFollowedAndNoOther) {
  for (const std::string_view name : {"uvm", "deepum", "g10", "furthest-lean"}) {
    const auto policy = run_policy(name);
    ASSERT_TRUE(policy) << name;
    EXPECT_EQ(policy->name, name);
    EXPECT_FALSE(policy->chooses);
    EXPECT_EQ(policy->plans(), name != "uvm" && name != "deepum") << name;
    EXPECT_EQ(policy->learns(), name == "deepum") << name;
    EXPECT_EQ(allowed_by(*policy), std::vector{name});
  }
}

TEST(RunPolicy, WhatNoRunCanFollowIsRefusedWithTheNamesThereAre) {
  for (const std::string_view name : {"ideal", "g10-gds", "magic", ""}) {
    const auto policy = run_policy(name);
    ASSERT_FALSE(policy) << name;
    EXPECT_TRUE(policy.error().message.contains("'; there are auto, uvm, ")) << policy.error().message;
  }
}

}  // namespace
}  // namespace spillway
