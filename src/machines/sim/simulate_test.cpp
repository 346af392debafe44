#include "machines/sim/simulate.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "memory/pieces.h"
#include "trace/validate.h"

namespace spillway {
namespace {

constexpr Nanos kMillisecond{1'000'000};
constexpr std::uint64_t kBlockMove = 2'097'152;  // nanoseconds for 2 MiB at 1 GB/s

// Persistent tensors of one block each; every kernel reads one of them for a millisecond.
Trace round_robin(std::uint32_t tensors) {
  Trace trace{.name = "round robin", .source = "test"};
  for (std::uint32_t id = 0; id < tensors; ++id) {
    trace.tensors.push_back({.name = "t", .bytes = kBlockBytes, .kind = TensorKind::weight, .persistent = true});
    Kernel kernel{.name = "k", .duration = kMillisecond, .reads = {{{id}, {}, kBlockBytes}}};
    trace.kernels.push_back(kernel);
  }
  return trace;
}

MachineModel machine(Bytes device, Bytes host) {
  MachineModel model;
  model.device.memory = device;
  model.host.memory = host;
  model.link.to_device = model.link.from_device = {1'000'000'000};
  model.link.latency = {};
  model.ssd.read = model.ssd.write = {500'000'000};
  model.ssd.read_latency = model.ssd.write_latency = Nanos{1000};
  model.ssd.capacity = 1_GiB;
  model.ssd.count = 1;
  model.fault.cost = {};
  model.fault.bytes = 64_KiB;
  return model;
}

SimulationResult run(const Trace& trace, const MachineModel& model, const PolicyTraits& traits,
                     const Plan* plan = nullptr) {
  const auto result = simulate(trace, analyse_lifetimes(trace), model, traits, plan);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(SimulationResult{});
}

// Tensors of one block each; tensor i comes from from[i], or is new; a kernel for each, then one that frees what goes
// nowhere.
Trace carried(const std::vector<std::optional<std::uint32_t>>& from) {
  Trace trace{.name = "carried", .source = "test"};
  std::vector<bool> goes_on(from.size(), false);
  for (const auto& source : from)
    if (source) goes_on[*source] = true;
  Kernel last{.name = "last", .duration = kMillisecond};
  for (std::uint32_t id = 0; id < from.size(); ++id) {
    std::optional<TensorId> source;
    if (from[id]) source = TensorId{*from[id]};
    trace.tensors.push_back({.name = "t",
                             .bytes = kBlockBytes,
                             .kind = TensorKind::activation,
                             .persistent = false,
                             .carried_from = source});
    const std::vector<Access> all{{{id}, {}, kBlockBytes}};
    trace.kernels.push_back({.name = "k", .duration = kMillisecond, .writes = all});
    last.reads.push_back(all[0]);
    if (!goes_on[id]) last.frees.push_back({id});
  }
  trace.kernels.push_back(last);
  return trace;
}

TEST(Simulate, TensorsThatAreCarriedInChainsAndCirclesKeepTheirBytes) {
  for (const std::vector<std::optional<std::uint32_t>>& from :
       std::initializer_list<std::vector<std::optional<std::uint32_t>>>{
           {2, 0, std::nullopt}, {std::nullopt, 0, 1}, {1, 0}, {1, 2, 0}}) {
    const Trace trace = carried(from);
    ASSERT_TRUE(validate(trace, "test"));
    const auto all = run(trace, machine(64_MiB, 64_MiB), {});
    EXPECT_TRUE(all.feasible && all.steady);
    EXPECT_EQ(all.faults, 0u);
    const auto little = run(trace, machine(kBlockBytes * 2, 64_MiB), {});
    EXPECT_TRUE(little.feasible);
    EXPECT_LE(little.peak.device, kBlockBytes * 2);
  }
}

TEST(Simulate, ATensorThatNoTierHoldsWholeIsSpreadOverThem) {
  Trace trace = round_robin(3);
  for (Tensor& tensor : trace.tensors) tensor.bytes = kBlockBytes * 30;
  MachineModel model = machine(kBlockBytes * 40, kBlockBytes * 45);
  model.ssd.capacity = kBlockBytes * 45;
  EXPECT_TRUE(run(trace, model, {}).feasible);
}

TEST(Simulate, WhatTheLowerTiersHaveNoRoomForTakesTheRoomOfTheWorkingSet) {
  Trace trace = round_robin(10);
  trace.tensors.push_back(
      {.name = "workspace", .bytes = kBlockBytes * 5, .kind = TensorKind::workspace, .persistent = false});
  trace.kernels[0].writes = {{{10}, {}, kBlockBytes * 5}};
  trace.kernels[0].frees = {{10}};
  ASSERT_TRUE(validate(trace, "test"));
  // 10 blocks in all beside the workspace: 4 on the device, 5 in host memory, and one more.
  MachineModel model = machine(kBlockBytes * 10, kBlockBytes * 5);
  model.ssd.capacity = {};
  const auto result = run(trace, model, {});
  EXPECT_EQ(result.shortfall, PerTier<Bytes>{});
  EXPECT_TRUE(result.feasible);
}

TEST(Simulate, KernelsThatCannotFaultWantWholeTensorsAndOthersTheirBytes) {
  Trace trace = round_robin(2);
  for (Tensor& tensor : trace.tensors) tensor.bytes = kBlockBytes * 4;
  trace.kernels[0].reads[0].sparse = true;  // as if all of its range were touched
  const MachineModel model = machine(kBlockBytes * 4, 1_GiB);
  const auto whole = run(trace, model, {.kernels_fault = false});
  EXPECT_EQ(whole.moved(Tier::host, Tier::device), kBlockBytes * 8);
  EXPECT_EQ(run(trace, model, {}).faults, 0u);  // one block of each fits
  trace.kernels[0].reads[0].end = kBlockBytes * 4;
  EXPECT_EQ(run(trace, model, {}).faults, 2u);  // its last block and the other tensor's take turns
  EXPECT_FALSE(run(trace, machine(kBlockBytes * 3, 1_GiB), {.kernels_fault = false}).feasible);
}

TEST(Simulate, ATimeOrSizeBeyondAllMachinesIsAnError) {
  Trace trace = round_robin(2);
  const MachineModel model = machine(4_MiB, 1_GiB * 1024 * 512);
  for (Kernel& kernel : trace.kernels) kernel.duration = {std::uint64_t{1} << 62};
  const auto slow = simulate(trace, analyse_lifetimes(trace), model, {}, nullptr);
  ASSERT_FALSE(slow);
  EXPECT_TRUE(slow.error().message.contains("146 years")) << slow.error().message;
  for (Tensor& tensor : trace.tensors) tensor.bytes = 1_GiB * 1024;
  for (Kernel& kernel : trace.kernels) kernel.reads[0].end = 1_GiB * 1024;
  while (trace.kernels.size() < 4096) trace.kernels.push_back(trace.kernels[0]);
  const auto large = simulate(trace, analyse_lifetimes(trace), model, {}, nullptr);
  ASSERT_FALSE(large);
  EXPECT_TRUE(large.error().message.contains("too large")) << large.error().message;
}

TEST(Simulate, ADeviceTooSmallForFaultsLacksDeviceMemory) {
  const auto result = run(round_robin(3), machine(1_MiB, 1_GiB), {});
  EXPECT_FALSE(result.feasible);
  EXPECT_EQ(result.shortfall.device, 3_MiB);
  EXPECT_TRUE(run(round_robin(3), machine(4_MiB, 1_GiB), {}).feasible);
  EXPECT_EQ(result.shortfall.ssd, Bytes{});
}

TEST(Simulate, WhatIsTooLargeToSimulateIsAnError) {
  Trace trace = round_robin(1);
  trace.tensors[0].bytes = Bytes{std::uint64_t{1} << 60};
  const auto result =
      simulate(trace, analyse_lifetimes(trace), machine(1_GiB, 1_GiB), {.unlimited_device = true}, nullptr);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().message.contains("too large")) << result.error().message;
}

TEST(Simulate, NothingMovesWhenAllFits) {
  const auto result = run(round_robin(3), machine(6_MiB, 1_GiB), {});
  EXPECT_TRUE(result.feasible && result.steady);
  EXPECT_EQ(result.iteration, kMillisecond * 3);
  EXPECT_EQ(result.faults, 0u);
  EXPECT_EQ(result.peak.device, 6_MiB);
  EXPECT_EQ(result.peak.host, Bytes{});
}

TEST(Simulate, PagingWritesAVictimThenReadsTheBlockThenRuns) {
  const auto result = run(round_robin(3), machine(4_MiB, 1_GiB), {});
  EXPECT_TRUE(result.steady);
  EXPECT_EQ(result.faults, 3u);
  EXPECT_EQ(result.stalled_kernels, 3u);
  EXPECT_EQ(result.iteration.value, 3 * (1'000'000 + 2 * kBlockMove));
  ASSERT_EQ(result.kernels.size(), 3u);
  for (const SimulatedKernel& kernel : result.kernels) {
    EXPECT_EQ(kernel.wait.value, 2 * kBlockMove);
    EXPECT_EQ(kernel.hidden, Nanos{});
    EXPECT_DOUBLE_EQ(kernel.slowdown(), 1 + 2 * kBlockMove * 1e-6);
  }
  EXPECT_EQ(result.moved(Tier::device, Tier::host), 6_MiB);
  EXPECT_EQ(result.moved(Tier::host, Tier::device), 6_MiB);
  EXPECT_EQ(result.peak.device, 4_MiB);
}

// A kernel that reads and writes more than the device holds.
TEST(Simulate, AKernelThatWorksInPlaceGoesThroughItOnce) {
  Trace trace = round_robin(1);
  trace.tensors[0].bytes = kBlockBytes * 3;
  trace.kernels[0].reads = trace.kernels[0].writes = {{{0}, {}, kBlockBytes * 3}};
  EXPECT_EQ(run(trace, machine(kBlockBytes * 2, kBlockBytes * 8), {}).faults, 3u);
}

// It comes back to a block that has left meanwhile: in pieces, each time more of them, so that few faults bring it.
TEST(Simulate, AKernelThatComesBackToWhatLeftMeanwhileFaultsOnPieces) {
  Trace trace = round_robin(1);
  trace.tensors[0].bytes = kBlockBytes * 3;
  trace.kernels[0].reads = {{{0}, {}, kBlockBytes * 3}, {{0}, {}, kPieceBytes * 7}};
  const auto result = run(trace, machine(kBlockBytes * 2, Bytes{}), {});
  EXPECT_LT(result.faults, kPiecesPerBlock / 4);
  EXPECT_LE(result.moved(Tier::ssd, Tier::device), kBlockBytes * 4);
  EXPECT_LE(result.peak.device, kBlockBytes * 2);
}

TEST(Simulate, AFaultTakesAtLeastWhatHandlingItCosts) {
  MachineModel model = machine(4_MiB, 1_GiB);
  model.fault.cost = Nanos{100'000};  // 32 times for 2 MiB: 3.2 ms, longer than the link takes
  EXPECT_EQ(run(round_robin(3), model, {}).iteration.value, 3 * (1'000'000 + kBlockMove + 3'200'000));
}

TEST(Simulate, WithoutHostMemoryVictimsGoToTheSsdAtItsRateAndLatency) {
  const auto result = run(round_robin(3), machine(4_MiB, Bytes{}), {});
  EXPECT_EQ(result.iteration.value, 3 * (1'000'000 + 2 * (1000 + 2 * kBlockMove)));
  EXPECT_EQ(result.moved(Tier::device, Tier::ssd), 6_MiB);
}

TEST(Simulate, APlanHidesMovesBehindKernels) {
  Trace trace = round_robin(3);
  for (Kernel& kernel : trace.kernels) kernel.duration = Nanos{3 * kBlockMove};
  // Each tensor leaves after its kernel and returns during the one before its next use.
  Plan plan;
  for (std::uint32_t id = 0; id < 3; ++id) {
    plan.evictions.push_back({.tensor = {id}, .after = {id}, .to = Tier::host});
    plan.prefetches.push_back({.tensor = {(id + 1) % 3}, .at = {id}});
  }
  PolicyTraits whole;
  whole.kernels_fault = false;
  const auto result = run(trace, machine(4_MiB, 1_GiB), whole, &plan);
  EXPECT_TRUE(result.steady);
  EXPECT_EQ(result.iteration, result.ideal);
  EXPECT_EQ(result.moved(Tier::device, Tier::host), 6_MiB);
  Nanos hidden;
  for (const SimulatedKernel& kernel : result.kernels) {
    EXPECT_DOUBLE_EQ(kernel.slowdown(), 1);
    EXPECT_EQ(kernel.hidden.value, 2 * kBlockMove) << "one leaves, and then one comes";
    hidden += kernel.hidden;
  }
  EXPECT_EQ(hidden, result.hidden);
}

TEST(Simulate, WhoKnowsTheIterationLetsKernelsWaitWhereOthersFault) {
  const Trace trace = round_robin(3);
  Plan plan;  // It brings nothing back.
  plan.evictions.push_back({.tensor = {0}, .after = {0}, .to = Tier::host});
  EXPECT_GT(run(trace, machine(4_MiB, 1_GiB), {}, &plan).faults, 0u);
  const auto result =
      simulate(trace, analyse_lifetimes(trace), machine(4_MiB, 1_GiB), {}, &plan, Foreknowledge::iteration);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->faults, 0u);
  EXPECT_GT(result->stalled_kernels, 0u);
}

TEST(Simulate, ACommandWhoseTensorIsElsewhereIsSkippedAndCounted) {
  Plan plan;
  plan.prefetches.push_back({.tensor = {1}, .at = {0}});  // It is on the device anyway.
  const auto result = run(round_robin(3), machine(6_MiB, 1_GiB), {}, &plan);
  EXPECT_EQ(result.skipped_commands, 2u);  // Once in each of two iterations.
}

TEST(Simulate, AWorkingSetLargerThanTheDeviceIsInfeasibleUnlessKernelsCanFault) {
  Trace trace = round_robin(3);
  trace.kernels[0].reads.push_back({{1}, {}, kBlockBytes});
  trace.kernels[0].reads.push_back({{2}, {}, kBlockBytes});
  PolicyTraits whole;
  whole.kernels_fault = false;
  const auto refused = run(trace, machine(4_MiB, 1_GiB), whole);
  EXPECT_FALSE(refused.feasible);
  EXPECT_EQ(refused.shortfall.device, 2_MiB);
  const auto paged = run(trace, machine(4_MiB, 1_GiB), {});
  EXPECT_TRUE(paged.feasible);
  EXPECT_EQ(paged.peak.device, 4_MiB);
}

TEST(Simulate, MoreThanAllTiersHoldIsInfeasibleAtTheLastOne) {
  MachineModel model = machine(2_MiB, 2_MiB);
  model.ssd.capacity = 1_MiB;
  const auto result = run(round_robin(3), model, {});
  EXPECT_FALSE(result.feasible);
  EXPECT_EQ(result.shortfall.ssd, 1_MiB);
  EXPECT_EQ(result.shortfall.device, Bytes{});
}

TEST(Simulate, HostGapsPassBeforeKernelsAndCountAsIdeal) {
  Trace trace = round_robin(2);
  trace.kernels[1].gap = kMillisecond;
  const auto result = run(trace, machine(6_MiB, 1_GiB), {});
  EXPECT_EQ(result.iteration, kMillisecond * 3);
  EXPECT_EQ(result.ideal, kMillisecond * 3);
}

// Two kernels in turns, each with four blocks of its own.
Trace in_turns() {
  Trace trace = round_robin(2);
  for (std::uint32_t id = 0; id < 2; ++id) {
    trace.tensors[id].bytes = kBlockBytes * 4;
    trace.kernels[id].reads[0].end = kBlockBytes * 4;
  }
  return trace;
}

// A device reads 3 GB while it has half of an SSD of 3 GB/s, or half of two.
TEST(Simulate, SeveralDevicesShareTheSsds) {
  Trace trace{.name = "reads", .source = "a test"};
  const Bytes half{1'500'000'000};
  trace.tensors = {{.name = "a", .bytes = half, .persistent = true}, {.name = "b", .bytes = half, .persistent = true}};
  for (const std::uint32_t tensor : {0u, 1u})
    trace.kernels.push_back({.name = "read", .duration = {}, .reads = {{.tensor = {tensor}, .end = half}}});
  MachineModel model = machine(Bytes{1'504'000'000}, {});
  model.device.count = 2;
  model.link.to_device = model.link.from_device = model.ssd.write = {100'000'000'000'000};
  model.ssd.read = {3'000'000'000};
  model.ssd.read_latency = model.ssd.write_latency = {};
  model.ssd.capacity = 16_GiB;
  const auto seconds_with = [&](std::uint64_t drives) {
    model.ssd.count = drives;
    const SimulationResult result = run(trace, model, {});
    EXPECT_TRUE(result.feasible);
    return seconds(result.iteration);
  };
  EXPECT_NEAR(seconds_with(1), 2, 0.01);
  EXPECT_NEAR(seconds_with(2), 1, 0.01);
}

TEST(Simulate, BlocksThatFaultTogetherPayTheLatencyOnce) {
  constexpr Nanos kLatency{50'000'000};  // far more than four blocks take on the link
  MachineModel model = machine(kBlockBytes * 4, 1_GiB);
  model.link.from_device = {std::uint64_t{1} << 60};  // what leaves has left in a nanosecond
  model.fault.bytes = kBlockBytes;
  model.fault.latency = kLatency;
  const auto services = [&](std::uint64_t batch) {
    model.fault.batch = batch;
    const auto result = run(in_turns(), model, {});
    EXPECT_EQ(result.faults, 8u);
    return seconds(result.stall()) / seconds(kLatency);
  };
  EXPECT_NEAR(services(1), 8, 1e-6);
  EXPECT_NEAR(services(4), 2, 1e-6);
  EXPECT_NEAR(services(3), 4, 1e-6) << "three and one";
}

TEST(Simulate, BlocksThatFaultTogetherPayTheLatencyOfTheirWayOnce) {
  constexpr Nanos kLatency{50'000'000};
  MachineModel model = machine(kBlockBytes * 4, {});
  model.link.from_device = model.ssd.write = {std::uint64_t{1} << 60};
  model.ssd.write_latency = {};
  model.ssd.read_latency = kLatency;
  model.fault.bytes = kBlockBytes;
  const auto latencies = [&](std::uint64_t batch) {
    model.fault.batch = batch;
    // A block takes twice as long as it does on the link.
    return (seconds(run(in_turns(), model, {}).stall()) - 16e-9 * kBlockMove) / seconds(kLatency);
  };
  EXPECT_NEAR(latencies(1), 8, 1e-6);
  EXPECT_NEAR(latencies(4), 2, 1e-6);
}

// Each arrival makes blocks leave that the kernel touches next.
TEST(Simulate, AServiceLargerThanTheDeviceComesToItsEnd) {
  for (const std::uint64_t device : {2u, 3u, 5u, 6u}) {
    Trace trace = in_turns();
    for (Kernel& kernel : trace.kernels)
      kernel.reads = {{{0}, {}, kBlockBytes * 4}, {{1}, {}, kBlockBytes * 4}, {{0}, {}, kBlockBytes * 4}};
    MachineModel model = machine(kBlockBytes * device, kBlockBytes * 4);
    model.fault.widen = 1;
    model.fault.batch = 256;
    EXPECT_TRUE(run(trace, model, {}).feasible) << device;
  }
}

TEST(Simulate, TheTimeOfAServiceIsThatOfTheLinkIfThatIsLonger) {
  MachineModel model = machine(kBlockBytes * 4, 1_GiB);
  model.link.from_device = {std::uint64_t{1} << 60};
  model.fault.batch = 128;  // four blocks of 32 granules
  model.fault.latency = kMillisecond * 8;
  EXPECT_NEAR(seconds(run(in_turns(), model, {}).stall()), 8e-9 * kBlockMove, 1e-7);
  model.fault.latency = kMillisecond * 10;
  EXPECT_NEAR(seconds(run(in_turns(), model, {}).stall()), 20e-3, 1e-7);
}

TEST(Simulate, FlashCountsWhatIsWrittenAndSlowsWhatItCannotTake) {
  MachineModel model = machine(kBlockBytes * 4, {});
  const auto plain = run(in_turns(), model, {});
  EXPECT_FALSE(plain.flash);
  model.ssd.capacity = kBlockBytes * 8;
  model.flash =
      FlashModel{.channels = 1, .dies = 1, .planes = 1, .program_time = Nanos{1'000}, .over_provisioning = 50};
  const auto fast = run(in_turns(), model, {});
  ASSERT_TRUE(fast.flash);
  EXPECT_EQ(fast.iteration, plain.iteration) << "1.2 GB/s each for one way of half a GB/s";
  EXPECT_EQ(fast.flash->iteration.host_written, fast.moved(Tier::device, Tier::ssd));
  EXPECT_EQ(fast.flash->iteration.host_written, kBlockBytes * 8);
  EXPECT_GE(fast.flash->all.erases, 1u);
  EXPECT_GE(fast.flash->iteration.write_amplification, 1);
  model.flash->program_time = Nanos{100'000};  // 41 MB/s
  EXPECT_GT(run(in_turns(), model, {}).iteration, plain.iteration);
}

// Less flash than all blocks that ever lie on it would need.
MachineModel with_little_flash(MachineModel model, std::uint64_t blocks) {
  model.host.memory = {};
  model.ssd.capacity = kBlockBytes * blocks;
  model.flash = FlashModel{.channels = 1, .dies = 1, .planes = 1, .over_provisioning = 100 / blocks + 20};
  return model;
}

TEST(Simulate, WhatHasComeBackIsDiscardedFromFlash) {
  const auto result = run(in_turns(), with_little_flash(machine(kBlockBytes * 4, {}), 6), {});
  EXPECT_TRUE(result.feasible);
  ASSERT_TRUE(result.flash);
  EXPECT_EQ(result.flash->iteration.write_amplification, 1) << "superblocks die as a whole";
}

TEST(Simulate, WhatDiesOnTheSsdIsDiscardedFromFlash) {
  Trace trace{.name = "short lives", .source = "test"};
  for (std::uint32_t id = 0; id < 12; ++id) {
    trace.tensors.push_back({.name = "t", .bytes = kBlockBytes, .kind = TensorKind::activation, .persistent = false});
    trace.kernels.push_back({.name = "k", .duration = kMillisecond, .writes = {{{id}, {}, kBlockBytes}}});
    if (id >= 3) trace.kernels[id].frees = {{id - 3}};
  }
  trace.kernels.back().frees = {{8}, {9}, {10}, {11}};
  ASSERT_TRUE(validate(trace, "test"));
  const auto result = run(trace, with_little_flash(machine(kBlockBytes * 2, {}), 4), {});
  EXPECT_TRUE(result.feasible);
  EXPECT_GT(result.moved(Tier::device, Tier::ssd), Bytes{});
  EXPECT_EQ(result.moved(Tier::ssd, Tier::device), Bytes{});
}

TEST(Simulate, ATensorCarriedUnderAnotherIdKeepsItsBytes) {
  // Each iteration reads the last one's result until it has made its own.
  Trace trace = round_robin(3);
  trace.tensors[0] = {
      .name = "old", .bytes = kBlockBytes, .kind = TensorKind::other, .persistent = false, .carried_from = TensorId{1}};
  trace.tensors[1] = {.name = "new", .bytes = kBlockBytes, .kind = TensorKind::other, .persistent = false};
  trace.kernels[1].writes = std::exchange(trace.kernels[1].reads, {});
  trace.kernels[2].reads.push_back({{0}, {}, kBlockBytes});
  trace.kernels[2].frees = {{0}};
  const auto result = run(trace, machine(6_MiB, 1_GiB), {});
  EXPECT_TRUE(result.feasible && result.steady);
  EXPECT_EQ(result.iteration, result.ideal);
  EXPECT_EQ(result.peak.device, 6_MiB);
}

TEST(Simulate, WhatIsCarriedUnderAnotherIdKeepsItsCopies) {
  Trace trace = round_robin(4);
  for (const std::uint32_t id : {0, 1, 2, 3})
    trace.tensors[id] = {.name = "t",
                         .bytes = kBlockBytes,
                         .kind = TensorKind::other,
                         .persistent = false,
                         .carried_from = TensorId{id ^ 1}};
  ASSERT_TRUE(validate(trace, "circles"));
  for (const bool copies : {false, true}) {
    const auto result = run(trace, machine(4_MiB, {}), {.keeps_copies = copies});
    EXPECT_GT(result.moved(Tier::ssd, Tier::device), Bytes{});
    EXPECT_EQ(result.moved(Tier::device, Tier::ssd) == Bytes{}, copies) << "nobody writes";
  }
}

}  // namespace
}  // namespace spillway
