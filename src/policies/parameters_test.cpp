#include <gtest/gtest.h>

#include "policies/policies.h"

namespace spillway {
namespace {

TEST(PolicyParameters, AreNumbersOrFiles) {
  const Policy policy = *policy_by_name("tensile:swap-limit=0.5,cold-start=/a/b:c=d.latencies");
  EXPECT_EQ(policy.traits.parameters["swap-limit"], 0.5);
  EXPECT_EQ(policy.traits.parameters.file("cold-start"), "/a/b:c=d.latencies");
  EXPECT_EQ(policy.traits.parameters["shrink"], 0) << "its fallback";
  EXPECT_EQ(policy_by_name("tensile")->traits.parameters.file("cold-start"), std::nullopt);
}

TEST(PolicyParameters, TheirTextIsThatOfThePolicy) {
  for (const char* text : {"tensile", "tensile:cold-start=x", "tensile:swap-limit=0.5,cold-start=x", "deepum:ahead=7"})
    EXPECT_EQ(text_of(*policy_by_name(text)), text);
}

TEST(PolicyParameters, WhatIsWrongIsSaid) {
  const auto error = [](const char* text) { return policy_by_name(text).error().message; };
  EXPECT_TRUE(error("tensile:cold-start=").contains("'cold-start' must name a file"));
  EXPECT_TRUE(error("tensile:cold-start").contains("NAME=VALUE"));
  EXPECT_TRUE(error("tensile:swap-limit=x").contains("a number from 0 to 1"));
  EXPECT_TRUE(error("tensile:shrink=0.5").contains("a whole number"));
}

}  // namespace
}  // namespace spillway
