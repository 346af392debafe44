#include "timeline/timeline_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway {
namespace {

RunTimeline small_timeline() {
  RunTimeline one{.trace_name = "small",
                  .trace_hash = "ab",
                  .policy = "g10",
                  .machine = "a100",
                  .iteration = Nanos{100},
                  .ideal = Nanos{80}};
  one.steady = false;
  one.capacity = {.device = 4_MiB, .host = {}, .ssd = Bytes{}};
  one.peak = {.device = 3_MiB};
  one.tensors = {{.name = "w \"1\"", .bytes = 2_MiB, .kind = TensorKind::weight, .at_start = {.ssd = 2_MiB}},
                 {.name = "a", .bytes = 1_MiB, .kind = TensorKind::activation}};
  one.kernels = {
      {.name = "k0",
       .kernel = {0},
       .phase = Phase::forward,
       .ready = {},
       .start = Nanos{20},
       .end = Nanos{50},
       .stall = Stall::on_its_way,
       .waited_for = TensorId{0},
       .cause = "waited",
       .reads = {{0}},
       .writes = {{1}}},
      {.name = "k0", .kernel = {0}, .is_replay = true, .ready = Nanos{50}, .start = Nanos{50}, .end = Nanos{100}}};
  one.transfers = {{.tensor = TensorId{0},
                    .bytes = 2_MiB,
                    .from = Tier::ssd,
                    .to = Tier::device,
                    .urgency = Urgency::plan,
                    .queued = {},
                    .begin = Nanos{5},
                    .end = Nanos{20},
                    .moves = 2,
                    .from_before = true},
                   {.bytes = 1_MiB,
                    .from = Tier::device,
                    .to = Tier::host,
                    .urgency = Urgency::fault,
                    .queued = Nanos{60},
                    .begin = Nanos{60},
                    .end = Nanos{100},
                    .copied = false,
                    .cancelled = true,
                    .goes_on = true}};
  one.lives = {{{}, {1}, true}, {Nanos{100}, {1}, false}};
  one.levels = {{{}, {.ssd = 2_MiB}}, {Nanos{20}, {.device = 3_MiB}}};
  return one;
}

TEST(TimelineFile, WhatIsWrittenIsRead) {
  const auto read = parse_timeline(to_json_lines(small_timeline()), "it");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, small_timeline());
}

// Line after line, with something wrong in it.
TEST(TimelineFile, SaysWhichLineIsWrongAndWhy) {
  const std::string good = to_json_lines(small_timeline());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {with("spillway-timeline", "spillway-plan"), "it: line 1: 'format' is 'spillway-plan'"},
      {with("\"version\":1", "\"version\":2"), "it: line 1: 'version' is 2; this program reads version 1"},
      {with("\"hash\":\"ab\"", "\"hash\":\"ab\",\"more\":1"), "it: line 1: 'trace' has something wrong: 'more'"},
      {with("{\"tensor\":1", "{\"tensor\":2"), "it: line 3: 'tensor' is 2, and must be 1"},
      {with("\"kind\":\"weight\"", "\"kind\":\"wait\""), "it: line 2: 'kind' must be one of weight, gradient"},
      {with("\"start_ns\":20", "\"start_ns\":70"), "it: line 4: 'end_ns' is before 'start_ns'"},
      {with("\"ready_ns\":50", "\"ready_ns\":49"), "it: line 5: 'ready_ns' is before the kernel before has ended"},
      {with("\"reads\":[0]", "\"reads\":[2]"), "it: line 4: 'reads' has 2, and there are 2 tensors"},
      {with("\"phase\":\"forward\"", "\"phase\":3"), "it: line 4: 'phase' must be a text"},
      {with("\"transfer\":0", "\"transfer\":9"), "it: line 6: 'transfer' is 9, and there are 2 tensors"},
      {with("\"from\":\"ssd\"", "\"from\":\"host\",\"from\":\"ssd\""), "it: line 6: a key stands twice"},
      {with("\"to\":\"host\"", "\"to\":\"device\""), "it: line 7: 'to' must be another tier"},
      {with("\"begin_ns\":60", "\"begin_ns\":101"), "it: line 7: 'end_ns' is before 'begin_ns'"},
      {with("\"freed\":1", "\"died\":1"), "it: line 9: 'tensor' is missing"},
      {with("{\"freed\":1,\"at_ns\":100}", "{\"freed\":1,\"at_ns\":101}"),
       "it: line 9: 'at_ns' is after the iteration"},
      {with("{\"level\":[0,0,2097152]", "{\"level\":[0,0]"), "it: line 10: 'level' must be three numbers"},
      {with("{\"lines\":12}", "{\"lines\":13}"), "it: line 12: 'lines' is 13, and there are 12"},
      {with("{\"lines\":12}\n", ""), "it: line 12: the last line, with 'lines', is missing"},
      {good + "{}\n", "it: line 13: nothing may follow"},
      {with("{\"born\":1", "[[[["), "it: line 8: it nests deeper"},
      {with("{\"born\":1", "{\"born\""), "it: line 8: no JSON"},
      {"", "it: line 1: the last line"}};
  for (const auto& [text, reason] : cases) {
    const auto read = parse_timeline(text, "it");
    ASSERT_FALSE(read) << reason;
    EXPECT_TRUE(read.error().message.starts_with(reason)) << read.error().message << "\n is not\n" << reason;
  }
}

TEST(TimelineFile, ComesBackFromACompressedFile) {
  const std::string path = testing::TempDir() + "/small.timeline.zst";
  ASSERT_TRUE(save_timeline(path, small_timeline()));
  EXPECT_EQ(load_timeline(path).value_or(RunTimeline{}), small_timeline());
  EXPECT_TRUE(names_timeline(path) && names_timeline("a.timeline") && !names_timeline("a.trace"));
}

}  // namespace
}  // namespace spillway
