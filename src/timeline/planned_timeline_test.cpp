#include "timeline/planned_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway {
namespace {

constexpr Nanos kMilli{1'000'000};

// Three kernels of 10 ms: the first uses a, the others b. Moves take a millisecond.
struct Planned {
  LoadedTrace loaded;
  MachineModel machine;
  Plan plan;

  Planned() {
    plan.policy = "g10";
    plan.machine_name = "m";
    loaded.trace = {.name = "t", .source = "test"};
    loaded.trace.tensors = {{.name = "a", .bytes = 1_MiB, .persistent = true},
                            {.name = "b", .bytes = 1_MiB, .persistent = true}};
    for (const std::uint32_t used : {0u, 1u, 1u})
      loaded.trace.kernels.push_back({.name = "k", .duration = Nanos{10'000'000}, .reads = {{{used}, {}, 1_MiB}}});
    machine.device.memory = 2_MiB;
    machine.link.to_device = machine.link.from_device = {1'000'000'000'000};
    machine.ssd.read = machine.ssd.write = {std::uint64_t{1'048'576'000}};
    machine.ssd.capacity = 1_GiB;
  }
  RunTimeline timeline(bool knows_machine = true) const {
    auto made = planned_timeline(plan, loaded, knows_machine ? std::optional(machine) : std::nullopt);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : RunTimeline{};
  }
};

Nanos at(std::uint64_t milliseconds) { return {kMilli.value * milliseconds}; }

TEST(PlannedTimeline, CommandsBecomeMovesAtTheirKernels) {
  Planned planned;
  planned.plan.evictions = {{.tensor = {0}, .after = {0}}};
  planned.plan.prefetches = {{.tensor = {0}, .at = {2}}};
  const RunTimeline timeline = planned.timeline();
  ASSERT_EQ(timeline.transfers.size(), 2u);
  EXPECT_EQ(timeline.transfers[0].to, Tier::ssd);
  EXPECT_EQ(timeline.transfers[0].begin, at(10)) << "when the kernel has ended";
  EXPECT_EQ(timeline.transfers[0].end, at(11));
  EXPECT_EQ(timeline.transfers[1].from, Tier::ssd);
  EXPECT_EQ(timeline.transfers[1].begin, at(20)) << "when the kernel starts";
  EXPECT_EQ(timeline.tensors[0].at_start.device, 1_MiB);
  EXPECT_EQ(timeline.peak.device, 2_MiB);
  EXPECT_EQ(timeline.peak.ssd, 1_MiB);
  EXPECT_EQ(timeline.heading, "as g10 plans it for m");
  EXPECT_EQ(timeline.kernels[0].stall, Stall::none);
  EXPECT_FALSE(timeline.shows_waits);
  const auto between = std::ranges::find(timeline.levels, at(11), &TierLevel::at);
  ASSERT_NE(between, timeline.levels.end());
  EXPECT_EQ(between->bytes, (PerTier<Bytes>{1_MiB, {}, 1_MiB}));
  EXPECT_EQ(timeline.levels.back().bytes, (PerTier<Bytes>{2_MiB, {}, {}}));
}

TEST(PlannedTimeline, AnIterationFindsWhatTheOneBeforeHasLeft) {
  Planned planned;
  planned.plan.evictions = {{.tensor = {1}, .after = {2}}};
  planned.plan.prefetches = {{.tensor = {1}, .at = {0}, .keeps_copy = true}};
  const RunTimeline timeline = planned.timeline();
  ASSERT_EQ(timeline.transfers.size(), 2u);
  EXPECT_FALSE(timeline.transfers[0].copied) << "nobody has written to it: it has the same bytes below";
  EXPECT_EQ(timeline.transfers[1].begin, at(0));
  EXPECT_EQ(timeline.transfers[1].end, at(1));
  EXPECT_EQ(timeline.levels.back().bytes.ssd, 1_MiB) << "the copy stays";
}

TEST(PlannedTimeline, OneCopyIsKept) {
  Planned planned;
  planned.plan.evictions = {{.tensor = {0}, .after = {0}, .to = Tier::ssd},
                            {.tensor = {0}, .after = {2}, .to = Tier::host}};
  planned.plan.prefetches = {{.tensor = {0}, .at = {1}, .keeps_copy = true}};
  const RunTimeline timeline = planned.timeline();
  EXPECT_EQ(timeline.levels.back().bytes.ssd, Bytes{}) << "the copy there is given up for the one in host memory";
}

TEST(PlannedTimeline, MovesOfOneWayTakeTurnsAndWhatComesLateIsSaid) {
  Planned planned;
  planned.machine.device.memory = 1_MiB;
  planned.machine.ssd.read = {52'428'800};  // 20 ms
  planned.plan.evictions = {{.tensor = {0}, .after = {0}}, {.tensor = {1}, .after = {2}}};
  planned.plan.prefetches = {{.tensor = {1}, .at = {0}}, {.tensor = {0}, .at = {2}}};
  const RunTimeline timeline = planned.timeline();
  const auto is_up = [](const PlayedTransfer& one) { return one.to == Tier::device; };
  std::vector<PlayedTransfer> up;
  std::ranges::copy_if(timeline.transfers, std::back_inserter(up), is_up);
  ASSERT_GE(up.size(), 2u);
  EXPECT_TRUE(up[0].from_before) << "it began in the iteration before, and still moves";
  EXPECT_EQ(up[1].begin, up[0].end);
  ASSERT_EQ(timeline.notes.size(), 3u);
  EXPECT_TRUE(timeline.notes[1].contains("before what they use has come")) << timeline.notes[1];
  EXPECT_TRUE(timeline.notes[2].contains("device would have to hold")) << timeline.notes[2];
}

TEST(PlannedTimeline, WithoutAMachineMovesTakeNoTime) {
  Planned planned;
  planned.plan.evictions = {{.tensor = {0}, .after = {0}}};
  planned.plan.prefetches = {{.tensor = {0}, .at = {2}}};
  const RunTimeline timeline = planned.timeline(false);
  ASSERT_EQ(timeline.transfers.size(), 2u);
  EXPECT_EQ(timeline.transfers[0].begin, timeline.transfers[0].end);
  EXPECT_EQ(timeline.capacity.device, std::nullopt);
}

}  // namespace
}  // namespace spillway
