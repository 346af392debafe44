#include "machines/sim/timeline_recorder.h"

#include <gtest/gtest.h>

#include <utility>

#include "machines/sim/simulate.h"

namespace spillway {
namespace {

constexpr Nanos kStep{1'000'000};

// Two tensors of 2 MiB that outlive iterations, used in turn; the device holds one. A GB/s moves one in 2.097152 ms.
struct Turns {
  Trace trace{.name = "turns", .source = "test"};
  MachineModel machine;
  RunTimeline timeline;
  SimulationResult result;

  explicit Turns(Bytes device, const Plan* plan = nullptr) {
    for (const char* name : {"a", "b"})
      trace.tensors.push_back({.name = name, .bytes = 2_MiB, .kind = TensorKind::weight, .persistent = true});
    for (const std::uint32_t used : {0u, 1u})
      trace.kernels.push_back({.name = "k", .duration = kStep, .writes = {{{used}, {}, 2_MiB}}});
    machine.device.memory = device;
    machine.host.memory = {};
    machine.link.to_device = machine.link.from_device = {1'000'000'000};
    machine.link.latency = {};
    machine.ssd.read = machine.ssd.write = {1'000'000'000};
    machine.ssd.read_latency = machine.ssd.write_latency = {};
    machine.ssd.capacity = 1_GiB;
    machine.ssd.count = 1;
    simulate_now(plan);
  }

  void simulate_now(const Plan* plan = nullptr) {
    PolicyTraits traits;
    traits.kernels_fault = false;
    traits.uses_host = false;
    const auto simulated =
        simulate(trace, analyse_lifetimes(trace), machine, traits, plan, Foreknowledge::commands, &timeline);
    EXPECT_TRUE(simulated) << simulated.error().message;
    result = simulated.value_or(SimulationResult{});
  }
};

TEST(TimelineRecorder, SeesWhatMovedAndWhyAKernelWaited) {
  const Turns turns(2_MiB);
  const RunTimeline& timeline = turns.timeline;
  ASSERT_TRUE(turns.result.feasible);
  EXPECT_EQ(timeline.iteration, turns.result.iteration);
  EXPECT_EQ(timeline.peak.device, 2_MiB);
  ASSERT_EQ(timeline.kernels.size(), 2u);
  Nanos waited;
  for (const PlayedKernel& kernel : timeline.kernels) {
    waited += kernel.wait();
    EXPECT_EQ(kernel.end - kernel.start, kStep);
    // One goes down and the other one comes up: as long, but the last step up is behind it.
    EXPECT_NE(kernel.stall, Stall::none);
    EXPECT_TRUE(kernel.waited_for.has_value());
  }
  EXPECT_EQ(waited + kStep + kStep, timeline.iteration);
  PerLink<Bytes> moved;
  for (const PlayedTransfer& transfer : timeline.transfers)
    if (transfer.copied && !transfer.cancelled) moved(transfer.from, transfer.to) += transfer.bytes;
  for (const auto& [from, to] : {std::pair{Tier::ssd, Tier::device}, std::pair{Tier::device, Tier::ssd}})
    EXPECT_EQ(moved(from, to), turns.result.moved(from, to));
}

// Four tensors, two at a time: both have to come, and one of them waits for its turn.
TEST(TimelineRecorder, TransfersOfOneUrgencyTakeTurnsOnTheirWay) {
  Turns turns(4_MiB);
  turns.trace.kernels.clear();
  for (const char* name : {"c", "d"})
    turns.trace.tensors.push_back({.name = name, .bytes = 2_MiB, .kind = TensorKind::weight, .persistent = true});
  for (const std::uint32_t used : {0u, 2u})
    turns.trace.kernels.push_back(
        {.name = "k", .duration = kStep, .writes = {{{used}, {}, 2_MiB}, {{used + 1}, {}, 2_MiB}}});
  turns.simulate_now();
  std::size_t queued = 0;
  for (const PlayedTransfer& one : turns.timeline.transfers) {
    queued += one.begin > one.queued ? 1 : 0;
    for (const PlayedTransfer& other : turns.timeline.transfers) {
      if (&one >= &other || one.from != other.from || one.to != other.to || one.urgency != other.urgency) continue;
      EXPECT_TRUE(one.end <= other.begin || other.end <= one.begin) << one.begin.value << " " << other.begin.value;
    }
  }
  EXPECT_GT(queued, 0u);
}

TEST(TimelineRecorder, SeesNothingMoveWhereAllFits) {
  const Turns turns(8_MiB);
  EXPECT_TRUE(turns.timeline.transfers.empty());
  EXPECT_EQ(turns.timeline.kernels[0].stall, Stall::none);
  EXPECT_EQ(turns.timeline.tensors[1].at_start, (PerTier<Bytes>{.device = 2_MiB}));
  EXPECT_EQ(turns.timeline.levels, (std::vector<TierLevel>{{{}, {.device = 4_MiB}}}));
  EXPECT_EQ(turns.timeline.capacity.device, 8_MiB);
}

}  // namespace
}  // namespace spillway
