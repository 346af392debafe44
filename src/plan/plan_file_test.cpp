#include "plan/plan_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace spillway {
namespace {

Plan small_plan() {
  Plan plan;
  plan.policy = "g10";
  plan.trace_name = "tiny";
  plan.trace_hash = "0123";
  plan.trace_shape = {.kernels = 7, .tensors = 5, .names = "89", .uses = "ab"};
  plan.machine_name = "a100";
  plan.machine_hash = "4567";
  plan.machine_overrides = {"device.memory=20GiB"};
  plan.evictions = {{{3}, {1}, Tier::ssd},
                    {.tensor = {4}, .after = {2}, .to = Tier::host, .delay = {}, .during = true, .awaited_by = {{3}}}};
  plan.prefetches = {{{4}, {5}}, {{3}, {6}, true, Nanos{17}, {{6}}}};
  plan.recomputations = {{{2}, {1}, {5}, {{0}, {1}}}};
  plan.overcommitted = 5_MiB;
  plan.predicted_seconds = 1.25;
  return plan;
}

// One that is refused at its first line tests nothing.
TEST(PlanFile, TheFuzzersSeedIsAPlan) {
  const auto seed = load_plan("fuzz/corpus/plan/small.plan");
  EXPECT_TRUE(seed) << seed.error().message;
}

TEST(PlanFile, WhatIsWrittenIsReadAgain) {
  const auto again = parse_plan(to_json(small_plan()), "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(*again == small_plan()) << to_json(*again);
}

TEST(PlanFile, AnEmptyPlanWithAStrangeNameIsReadAgain) {
  Plan plan;
  plan.trace_name = "quote \" backslash \\ newline \n euro \xe2\x82\xac";
  const auto again = parse_plan(to_json(plan), "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(*again == plan) << to_json(*again);
}

// The error of a plan in which `from` stands as `to`; it must name the file and hold `says`.
void expect_plan_refused(std::string_view from, std::string_view to, std::string_view says) {
  std::string text = to_json(small_plan());
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  const auto plan = parse_plan(text.replace(at, from.size(), to), "my.plan");
  ASSERT_FALSE(plan) << to;
  EXPECT_TRUE(plan.error().message.contains("my.plan")) << plan.error().message;
  EXPECT_TRUE(plan.error().message.contains(says)) << plan.error().message;
}

TEST(PlanFile, WhatIsWrongIsNamedWithItsPlace) {
  expect_plan_refused("spillway-plan", "spillway-trace", "is this a plan?");
  expect_plan_refused("spillway-plan\"", "spillway-trace\", \"kernels\": []", "is this a plan?");
  expect_plan_refused("\"version\": 4", "\"version\": 3", "reads version 4");
  expect_plan_refused("\"keeps_copy\": true", "\"keeps_copy\": 1", "must be true or false");
  expect_plan_refused("\"policy\"", "\"polciy\"", "'polciy' is not a known key");
  expect_plan_refused("\"tensor\": 4, \"after_kernel\": 2", "\"tensor\": -4, \"after_kernel\": 2",
                      "evictions[1]: 'tensor'");
  expect_plan_refused("\"tensor\": 4, \"after_kernel\": 2", "\"tensor\": 4.5, \"after_kernel\": 2",
                      "evictions[1]: 'tensor'");
  expect_plan_refused("\"after_kernel\": 2", "\"after_kernel\": 99999999999", "evictions[1]: 'after_kernel'");
  expect_plan_refused("\"after_kernel\": 2", "\"after_kernel\": 99999999999999999999999", "'after_kernel'");
  expect_plan_refused("\"to\": \"host\"", "\"to\": \"device\"", "evictions[1]: 'to' must be \"host\" or \"ssd\"");
  expect_plan_refused("\"to\": \"host\"", "\"to\": 7", "evictions[1]: 'to' must be a text");
  expect_plan_refused(", \"at_kernel\": 5", "", "prefetches[0]: 'at_kernel' is missing");
  expect_plan_refused("\"evictions\": [", "\"evictions\": [[],", "evictions[0] must be an object");
  expect_plan_refused("\"predicted_seconds\": 1.25", "\"predicted_seconds\": \"soon\"", "'predicted_seconds'");
  expect_plan_refused("\"predicted_seconds\": 1.25", "\"predicted_seconds\": -1", "'predicted_seconds'");
  expect_plan_refused("\"predicted_seconds\": 1.25", "\"predicted_seconds\": 1e999", "my.plan");
  expect_plan_refused("[\"device.memory=20GiB\"]", "[7]", "'overrides'");
  expect_plan_refused("\"policy\"", "\"policy\": \"g10\", \"policy\"", "'policy' stands twice");
  expect_plan_refused("\"trace\": {", "\"trace\": {\"colour\": 1, ", "'colour' is not a known key");
  expect_plan_refused("\"shape\"", "\"shap\"", "'shap' is not a known key");
  expect_plan_refused("\"kernels\": 7", "\"kernels\": -7", "trace: shape: 'kernels'");
  expect_plan_refused("\"uses\": \"ab\"", "\"uses\": 3", "trace: shape: 'uses' must be a text");
  expect_plan_refused("\"overcommitted_bytes\": ", "\"overcommitted_bytes\": -", "'overcommitted_bytes'");
}

TEST(PlanFile, TextThatIsNoPlanIsRefused) {
  const std::string whole = to_json(small_plan());
  for (std::size_t cut = 0; cut + 2 < whole.size(); cut += 7) EXPECT_FALSE(parse_plan(whole.substr(0, cut), "cut"));
  for (const std::string& text : {std::string("[]"), std::string("{}"), std::string("7"), std::string("\xff\xfe"),
                                  std::string(200'000, '['), std::string(200'000, '{')})
    EXPECT_FALSE(parse_plan(text, "other"));
}

RC_GTEST_PROP(PlanFileProperty, AnyPlanIsReadAgain, ()) {
  Plan plan = small_plan();
  plan.evictions.clear();
  plan.prefetches.clear();
  for (const auto& [tensor, kernel] : *rc::gen::arbitrary<std::vector<std::pair<std::uint32_t, std::uint32_t>>>()) {
    plan.evictions.push_back({{tensor}, {kernel}, tensor % 2 ? Tier::host : Tier::ssd});
    plan.prefetches.push_back({{kernel}, {tensor}});
  }
  plan.predicted_seconds = 1e-3 * *rc::gen::inRange(0, 1'000'000);
  const auto again = parse_plan(to_json(plan), "again");
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->evictions == plan.evictions && again->prefetches == plan.prefetches);
  RC_ASSERT(again->predicted_seconds == plan.predicted_seconds);
}

}  // namespace
}  // namespace spillway
