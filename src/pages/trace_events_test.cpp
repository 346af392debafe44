#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "pages/page.h"

namespace spillway {
namespace {

// A tensor comes for the second kernel, which waits.
RunTimeline one_transfer() {
  RunTimeline timeline{
      .trace_name = "t", .policy = "g10", .machine = "m", .iteration = Nanos{4000}, .ideal = Nanos{2000}};
  timeline.tensors = {{.name = "w \"0\"", .bytes = 2_MiB}};
  timeline.kernels = {{.name = "k0", .ready = {}, .start = {}, .end = Nanos{1000}},
                      {.name = "k1",
                       .ready = Nanos{1000},
                       .start = Nanos{3001},
                       .end = Nanos{4000},
                       .stall = Stall::on_its_way,
                       .cause = "waited",
                       .reads = {{0}}}};
  timeline.transfers = {{.tensor = TensorId{0},
                         .bytes = 2_MiB,
                         .from = Tier::ssd,
                         .to = Tier::device,
                         .urgency = Urgency::plan,
                         .queued = {},
                         .begin = Nanos{500},
                         .end = Nanos{3001}}};
  timeline.peak = {.device = 2_MiB};
  timeline.levels = {{{}, {}}, {Nanos{500}, {.device = 2_MiB}}};
  return timeline;
}

TEST(TraceEvents, HaveATrackForTheDeviceAndEachLinkCountersAndArrows) {
  const auto all = nlohmann::json::parse(trace_events_of(one_transfer()))["traceEvents"];
  std::map<std::string, std::vector<nlohmann::json>> by_kind;
  std::map<int, std::string> tracks;
  for (const auto& one : all) {
    by_kind[one["ph"]].push_back(one);
    if (one["name"] == "thread_name") tracks[one["tid"]] = one["args"]["name"];
  }
  EXPECT_EQ(by_kind["X"].size(), 4u) << "two kernels, a wait, a transfer";
  EXPECT_EQ(by_kind["C"].size(), 2u) << "only tiers that hold something";
  ASSERT_EQ(by_kind["s"].size(), 1u);
  ASSERT_EQ(by_kind["f"].size(), 1u);
  EXPECT_EQ(by_kind["s"][0]["id"], by_kind["f"][0]["id"]);
  EXPECT_EQ(by_kind["f"][0]["ts"].get<double>(), 3.001) << "where the kernel starts";
  const auto& wait = by_kind["X"][2];
  EXPECT_EQ(tracks[wait["tid"]], "device: waits");
  EXPECT_EQ(wait["args"]["cause"], "waited");
  EXPECT_EQ(wait["dur"].get<double>(), 2.001);
  EXPECT_EQ(tracks[by_kind["X"][3]["tid"]], "ssd to device");
  EXPECT_EQ(by_kind["X"][3]["name"], "w \"0\"");
}

TEST(TraceEvents, ThreadsHaveTracksAndMarksTheirMoments) {
  RunTimeline timeline = one_transfer();
  timeline.kernels[1].thread = 7;
  timeline.kernels[1].kernel = kNoKernel;
  timeline.marks = {{Nanos{1000}, "iteration 2"}};
  const auto all = nlohmann::json::parse(trace_events_of(timeline))["traceEvents"];
  std::map<std::string, int> tracks;
  for (const auto& one : all)
    if (one["name"] == "thread_name") tracks[one["args"]["name"]] = one["tid"];
  EXPECT_TRUE(tracks.contains("thread 0: kernels") && !tracks.contains("thread 0: waits"));
  for (const auto& one : all) {
    if (one["ph"] == "f") {
      EXPECT_EQ(one["tid"], tracks["thread 7: kernels"]) << "the arrow goes to its thread";
    } else if (one["name"] == "k1") {
      EXPECT_FALSE(one["args"].contains("kernel")) << "it has no place in an iteration";
    } else if (one["ph"] == "i") {
      EXPECT_EQ(one["name"], "iteration 2");
    }
  }
}

}  // namespace
}  // namespace spillway
