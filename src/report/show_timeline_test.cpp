#include "report/show_timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace spillway {
namespace {

// Twelve kernels: the n-th waits n microseconds, the odd ones for room.
RunTimeline twelve() {
  RunTimeline timeline{.trace_name = "t", .policy = "g10", .machine = "m"};
  timeline.tensors = {{.name = "w", .bytes = 1_MiB}};
  Nanos at;
  for (std::uint64_t n = 0; n < 12; ++n) {
    const Nanos start = at + Nanos{1'000 * n};
    timeline.kernels.push_back({.name = "k" + std::to_string(n),
                                .kernel = {static_cast<std::uint32_t>(n)},
                                .ready = at,
                                .start = start,
                                .end = start + Nanos{10},
                                .stall = n == 0       ? Stall::none
                                         : n % 2 == 1 ? Stall::no_room
                                                      : Stall::asked_late,
                                .cause = n == 0 ? "" : "waited\x1b[2J"});
    at = timeline.kernels.back().end;
  }
  timeline.kernels[11].waited_for = TensorId{0};
  timeline.iteration = at;
  PlayedTransfer up{.tensor = TensorId{0},
                    .bytes = 1_MiB,
                    .from = Tier::ssd,
                    .to = Tier::device,
                    .urgency = Urgency::need,
                    .queued = {},
                    .begin = {},
                    .end = Nanos{500}};
  timeline.transfers = {up, up, up};
  timeline.transfers[1].copied = false;
  timeline.transfers[2].goes_on = true;
  timeline.peak = {1_MiB, {}, 1_MiB};
  return timeline;
}

TEST(ShowTimeline, SaysWhyKernelsWaitedAndWhichLongest) {
  const auto report = nlohmann::json::parse(timeline_json(twelve()));
  EXPECT_EQ(report["waiting_kernels"], 11);
  EXPECT_DOUBLE_EQ(report["waited_seconds"], 66e-6);
  EXPECT_EQ(report["stalls"]["no_room"]["kernels"], 6);
  EXPECT_DOUBLE_EQ(report["stalls"]["asked_late"]["seconds"], 30e-6);
  ASSERT_EQ(report["longest_waits"].size(), 10u);
  EXPECT_EQ(report["longest_waits"][0]["name"], "k11");
  EXPECT_EQ(report["longest_waits"][0]["waited_for"], "w");
  EXPECT_EQ(report["longest_waits"][9]["name"], "k2");
  EXPECT_TRUE(report["longest_waits"][9]["waited_for"].is_null());
  EXPECT_EQ(report["links"]["ssd_to_device"]["bytes"], 1 << 20) << "what was not copied did not move";
  EXPECT_EQ(report["links"]["ssd_to_device"]["transfers"], 1) << "what is still under way counts when it is there";
  EXPECT_DOUBLE_EQ(report["links"]["ssd_to_device"]["busy_seconds"], 1e-6) << "but it takes the link's time now";
  EXPECT_TRUE(report["capacity_bytes"]["device"].is_null());
}

TEST(ShowTimeline, ColumnsLineUpAndForeignTextDoesNotSteerTheTerminal) {
  const std::string text = timeline_table(twelve());
  EXPECT_FALSE(text.contains('\x1b'));
  const std::string header =
      text.substr(text.find("longest waits"), text.find('\n', text.find("longest waits")) - text.find("longest waits"));
  const std::size_t why = header.find("why");
  std::size_t line = text.find("k11");
  EXPECT_EQ(text.substr(line + why, 6), "waited");
  line = text.find("k2 ");
  EXPECT_EQ(text.substr(line + why, 6), "waited");
}

}  // namespace
}  // namespace spillway
