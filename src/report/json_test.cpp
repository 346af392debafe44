#include "report/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace spillway {
namespace {

TEST(JsonReport, BeginsWithTheVersionAndTheTrace) {
  LoadedTrace loaded{.trace = {.name = "bert", .source = "test"}, .hash = "abc"};
  const nlohmann::ordered_json report = new_report(loaded);
  EXPECT_EQ(report.begin().key(), "spillway");
  EXPECT_EQ(report["spillway"], std::string(kVersion));
  EXPECT_EQ(report["trace"]["name"], "bert");
  EXPECT_EQ(report["trace"]["hash"], "abc");
  EXPECT_FALSE(report.contains("estimated_times"));
  loaded.trace.estimated = "roofline, a100";
  EXPECT_EQ(new_report(loaded)["estimated_times"], true);
}

TEST(JsonReport, KeepsTheOrderInWhichFieldsWereAddedAndEndsWithANewline) {
  nlohmann::ordered_json report = new_report();
  report["z"] = 1;
  report["a"] = 2;
  const std::string text = to_text(report);
  EXPECT_LT(text.find("\"z\""), text.find("\"a\""));
  EXPECT_TRUE(text.ends_with("}\n"));
}

TEST(JsonReport, WhatIsNotUtf8IsReplacedAndDoesNotThrow) {
  nlohmann::ordered_json report = new_report({.trace = {.name = "\xff", .source = "test"}, .hash = "h"});
  EXPECT_TRUE(to_text(report).contains("\ufffd"));
}

}  // namespace
}  // namespace spillway
