#include "timeline/run_timeline.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

PlayedTransfer up(std::uint32_t tensor, std::uint64_t queued, std::uint64_t begin, std::uint64_t end) {
  return {.tensor = TensorId{tensor},
          .bytes = 1_MiB,
          .from = Tier::ssd,
          .to = Tier::device,
          .urgency = Urgency::plan,
          .queued = Nanos{queued},
          .begin = Nanos{begin},
          .end = Nanos{end}};
}
PlayedTransfer down(std::uint64_t begin, std::uint64_t end) {
  PlayedTransfer one = up(1, begin, begin, end);
  std::swap(one.from, one.to);
  return one;
}

// A kernel that uses tensor 0 and is ready at 100, starts at 200.
PlayedKernel explained(const std::vector<PlayedTransfer>& transfers) {
  RunTimeline timeline{.iteration = Nanos{300}, .ideal = Nanos{200}};
  timeline.tensors = {{.name = "w", .bytes = 1_MiB}, {.name = "x", .bytes = 1_MiB}};
  timeline.kernels = {{.name = "k", .ready = Nanos{100}, .start = Nanos{200}, .end = Nanos{300}, .reads = {{0}}}};
  timeline.transfers = transfers;
  explain_stalls(timeline);
  return timeline.kernels[0];
}

TEST(RunTimeline, AKernelsWaitHasTheReasonThatTookLongest) {
  EXPECT_EQ(explained({up(0, 100, 110, 200)}).stall, Stall::asked_late);
  EXPECT_EQ(explained({up(0, 50, 60, 200)}).stall, Stall::on_its_way);
  EXPECT_EQ(explained({up(0, 50, 160, 200)}).stall, Stall::behind_others);
  EXPECT_EQ(explained({down(90, 180), up(0, 180, 180, 200)}).stall, Stall::no_room);
  EXPECT_EQ(explained({down(90, 200)}).stall, Stall::no_room);
  EXPECT_EQ(explained({up(1, 90, 90, 200)}).stall, Stall::other) << "that is for somebody else";
  EXPECT_EQ(explained({up(0, 10, 10, 100), up(0, 210, 210, 220)}).stall, Stall::other) << "before and after";
  EXPECT_EQ(explained({up(0, 50, 60, 200)}).waited_for, TensorId{0});
  EXPECT_EQ(explained({up(0, 50, 60, 200)}).cause,
            "waited 100 ns for w (1 MiB) from the SSD: it was asked for 50 ns before the kernel was ready, and still "
            "moved");
}

TEST(RunTimeline, WhatLeavesMeanwhileIsAllThatHasBegunAndIsNotOver) {
  EXPECT_EQ(
      explained({down(10, 99), down(20, 100), down(30, 101), down(150, 250), down(199, 300), down(200, 300)}).cause,
      "waited 100 ns for room on the device: 3 MiB left the device meanwhile, in 3 transfers");
}

TEST(RunTimeline, PageFaultsCountWhileTheKernelRuns) {
  RunTimeline timeline{.iteration = Nanos{300}, .ideal = Nanos{200}};
  timeline.tensors = {{.name = "w", .bytes = 1_MiB}};
  timeline.kernels = {
      {.name = "k", .ready = Nanos{100}, .start = Nanos{120}, .end = Nanos{300}, .reads = {{0}}, .faults = 1}};
  timeline.transfers = {up(0, 250, 260, 280)};
  explain_stalls(timeline);
  EXPECT_EQ(timeline.kernels[0].stall, Stall::asked_late);
  EXPECT_EQ(timeline.kernels[0].cause,
            "waited 20 ns for w (1 MiB) from the SSD, by 1 page fault while it ran: nobody had asked for it before the "
            "kernel wanted it");
}

TEST(RunTimeline, ChunksWithoutAPauseAreOneTransfer) {
  const auto one = merged({up(0, 0, 0, 10), up(0, 5, 10, 20), up(0, 5, 21, 30), up(1, 5, 30, 40)});
  ASSERT_EQ(one.size(), 3u) << "a pause and another tensor part them";
  EXPECT_EQ(one[0].bytes, 2_MiB);
  EXPECT_EQ(one[0].moves, 2u);
  EXPECT_EQ(one[0].end, Nanos{20});
  PlayedTransfer under_way = up(0, 5, 10, 20);
  under_way.goes_on = true;
  EXPECT_EQ(merged({up(0, 0, 0, 10), under_way}).size(), 2u) << "its bytes are not there yet";
}

TEST(RunTimeline, LevelsThatNoPictureShowsAreLeftOut) {
  const auto at = [](std::uint64_t time, std::uint64_t bytes) { return TierLevel{Nanos{time}, {.device = {bytes}}}; };
  const PerTier<Bytes> peak{.device = Bytes{10 * kLevelSteps}};
  EXPECT_EQ(thinned({at(0, 0), at(1, 9), at(2, 10), at(3, 19), at(4, 0), at(5, 3)}, peak),
            (std::vector{at(0, 0), at(2, 10), at(4, 0), at(5, 3)}));
}

TEST(RunTimeline, WithAllMemoryNothingMoves) {
  Trace trace{.name = "t", .source = "test"};
  trace.tensors = {{.name = "w", .bytes = 3_MiB, .persistent = true}, {.name = "a", .bytes = 1_MiB}};
  trace.kernels = {{.name = "k", .duration = Nanos{10}, .gap = Nanos{5}, .writes = {{{1}, {}, 1_MiB}}, .frees = {{1}}}};
  const RunTimeline timeline = unlimited_timeline(trace, "hash");
  EXPECT_EQ(timeline.iteration, Nanos{15});
  EXPECT_EQ(timeline.peak.device, 4_MiB);
  EXPECT_EQ(timeline.tensors[0].at_start.device, 3_MiB);
  EXPECT_EQ(timeline.lives, (std::vector<PlayedLife>{{Nanos{5}, {1}, true}, {Nanos{15}, {1}, false}}));
  EXPECT_EQ(timeline.levels.size(), 3u);
  EXPECT_EQ(timeline.trace_name, "t");
  trace.estimated = "roofline, a100";
  EXPECT_EQ(unlimited_timeline(trace, "hash").trace_name, "t (times estimated: roofline, a100)");
}

}  // namespace
}  // namespace spillway
