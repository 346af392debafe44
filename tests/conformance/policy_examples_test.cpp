#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "analysis/lifetimes.h"
#include "machines/sim/simulate.h"
#include "plan/machine_file.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "trace/validate.h"

namespace spillway {
namespace {

constexpr Nanos kMillisecond{1'000'000};

// Each way moves 1 MiB in a millisecond, or a part of it.
MachineModel machine_of(Bytes device, double mib_per_ms = 1) {
  MachineModel model = *load_machine("a100");
  const BytesPerSecond rate{static_cast<std::uint64_t>(mib_per_ms * 1'048'576'000)};
  model.device.memory = device;
  model.link = {.to_device = rate, .from_device = rate, .latency = {}};
  model.ssd.read = model.ssd.write = rate;
  model.ssd.read_latency = model.ssd.write_latency = {};
  return model;
}

// Kernels of 10 ms, which may all be replayed.
class Script {
 public:
  TensorId tensor(std::uint64_t mib, bool persistent = false) {
    trace_.tensors.push_back({.name = std::string(1, static_cast<char>('A' + trace_.tensors.size())),
                              .bytes = Bytes{mib << 20},
                              .persistent = persistent});
    return {static_cast<std::uint32_t>(trace_.tensors.size() - 1)};
  }
  void kernel(std::string name, Phase phase, const std::vector<TensorId>& reads, const std::vector<TensorId>& writes,
              std::vector<TensorId> frees = {}) {
    Kernel kernel{.name = std::move(name), .phase = phase, .duration = kMillisecond * 10};
    for (const TensorId id : reads) kernel.reads.push_back({.tensor = id, .end = trace_[id].bytes});
    for (const TensorId id : writes) kernel.writes.push_back({.tensor = id, .end = trace_[id].bytes});
    kernel.frees = std::move(frees);
    kernel.replay = Replayable{};
    trace_.kernels.push_back(std::move(kernel));
  }
  // Of the latest one.
  void takes(Nanos duration, Nanos gap = {}) {
    trace_.kernels.back().duration = duration;
    trace_.kernels.back().gap = gap;
  }
  const Trace& trace() const { return trace_; }

 private:
  Trace trace_{.name = "script", .source = "a test"};
};

// k0 makes A (6 MiB); k1 B (2); k2 reads B and makes C (8); k3 reads A and C and makes D (1). Alive: 6, 8, 16, 15.
Trace trace_e() {
  Script script;
  const TensorId a = script.tensor(6), b = script.tensor(2), c = script.tensor(8), d = script.tensor(1);
  script.kernel("k0", Phase::forward, {}, {a});
  script.kernel("k1", Phase::forward, {}, {b});
  script.kernel("k2", Phase::backward, {b}, {c}, {b});
  script.kernel("k3", Phase::backward, {a, c}, {d}, {a, c, d});
  return script.trace();
}

struct Outcome {
  Plan plan;
  SimulationResult result;
};
Outcome outcome_of(const std::string& name, const Trace& trace, const MachineModel& model,
                   std::optional<Plan> given = std::nullopt) {
  EXPECT_TRUE(validate(trace, "trace").has_value());
  const Policy policy = *policy_by_name(name);
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  Outcome outcome;
  if (given)
    outcome.plan = *given;
  else if (policy.plan != nullptr)
    outcome.plan = policy.plan({trace, lifetimes, model, policy.traits.parameters});
  const auto valid = validate_plan(outcome.plan, trace, "", lifetimes, model, policy.traits.uses_host, "plan");
  EXPECT_TRUE(valid.has_value()) << valid.error().message;
  const auto result =
      simulate(trace, lifetimes, model, policy.traits, policy.plan != nullptr ? &outcome.plan : nullptr);
  EXPECT_TRUE(result.has_value());
  outcome.result = *result;
  return outcome;
}

// The peak is 16 MiB when C comes, at 20 ms. C itself has just come. A's copy fits between the end of k0 and the peak:
// 10 to 16 ms. Its last free time before k3 is 24 to 30 ms, which is 4 ms after k2 starts.
TEST(PolicyExamples, TensileMovesWhatIsThereAtThePeak) {
  const Outcome of = outcome_of("tensile", trace_e(), machine_of(16_MiB));
  EXPECT_EQ(of.plan.evictions, (std::vector<Eviction>{{{0}, {0}, Tier::host, {}, false, {}}}));
  EXPECT_EQ(of.plan.prefetches, (std::vector<Prefetch>{{{0}, {2}, true, kMillisecond * 4, {}}}));
  EXPECT_EQ(of.result.iteration, kMillisecond * 40);
  EXPECT_EQ(of.result.peak.device, 16_MiB) << "what arrives counts from its start";
}

TEST(PolicyExamples, TensileMovesNothingWhereAllFitsUnlessItIsToShrink) {
  EXPECT_EQ(outcome_of("tensile", trace_e(), machine_of(32_MiB)).plan.moves(), 0u);
  EXPECT_EQ(outcome_of("tensile:shrink=1", trace_e(), machine_of(32_MiB)).plan.moves(), 2u);
}

// A's copy stays in host memory, so A goes at once after k5 and comes for k7. k6 takes no time: it ends when k5 does.
TEST(PolicyExamples, TensileLetsGoBeforeKernelsOfNoTime) {
  Script script;
  const TensorId a = script.tensor(6), b = script.tensor(2), c = script.tensor(8), d = script.tensor(1);
  script.kernel("k0", Phase::forward, {}, {a});
  script.kernel("k1", Phase::forward, {}, {b});
  script.kernel("k2", Phase::forward, {b}, {c}, {b});
  script.kernel("k3", Phase::forward, {c}, {d}, {c});
  script.kernel("k4", Phase::forward, {d}, {d});
  script.kernel("k5", Phase::forward, {a}, {});
  script.kernel("k6", Phase::forward, {d}, {});
  script.takes({});
  script.kernel("k7", Phase::forward, {a}, {}, {a, d});
  script.takes(kMillisecond * 10, kMillisecond * 40);
  MachineModel machine = machine_of(15_MiB);
  machine.host.keeps_copies = 1;
  const Outcome of = outcome_of("tensile", script.trace(), machine);
  ASSERT_EQ(of.plan.evictions.size(), 2u);
  EXPECT_EQ(of.plan.evictions[1], (Eviction{a, {5}, Tier::host, {}, false, {}}));
}

// Only k2 needs more than 15 MiB. Between its uses A is away for 6 ms out, 6 ms in, and 8 ms are free: 10 to 30 ms.
// It must start to come at 24 ms, so k2 is the last kernel that starts before.
TEST(PolicyExamples, CapuchinSwapsWhatHasFreeTime) {
  const Outcome of = outcome_of("capuchin", trace_e(), machine_of(15_MiB));
  EXPECT_EQ(of.plan.evictions, (std::vector<Eviction>{{{0}, {0}, Tier::host, {}, false, {}}}));
  EXPECT_EQ(of.plan.prefetches, (std::vector<Prefetch>{{{0}, {2}, false, {}, {}}}));
  EXPECT_TRUE(of.plan.recomputations.empty());
  EXPECT_EQ(of.result.cold_iteration, kMillisecond * 52) << "A leaves for C and comes for k3, both waited for";
  EXPECT_EQ(of.result.iteration, kMillisecond * 42) << "its last third comes once B is dead";
  EXPECT_EQ(of.result.peak.device, 15_MiB);
}

// At 0.25 MiB a millisecond a copy takes 24 ms, so 28 ms are missing. To run k0 again takes 10.
TEST(PolicyExamples, CapuchinRecomputesWhatASwapWouldDelayLonger) {
  const Outcome of = outcome_of("capuchin", trace_e(), machine_of(15_MiB, 0.25));
  EXPECT_TRUE(of.plan.evictions.empty());
  EXPECT_EQ(of.plan.recomputations, (std::vector<Recomputation>{{{0}, {0}, {3}, {{0}}}}));
  EXPECT_EQ(of.result.iteration, kMillisecond * 50);
  EXPECT_EQ(of.result.ideal, kMillisecond * 40);
  EXPECT_EQ(of.result.peak.device, 15_MiB);
  EXPECT_EQ(of.result.recomputed_kernels, 1u);
  EXPECT_EQ(of.result.recompute, kMillisecond * 10);
}

// X is read by k0 for the last time before the backward pass; Y's next use is that of the kernel after k1, so it stays.
TEST(PolicyExamples, VdnnEvictsDuringConvolutions) {
  Script script;
  const TensorId x = script.tensor(4), y = script.tensor(4), z = script.tensor(4), g = script.tensor(4);
  script.kernel("make", Phase::forward, {}, {x});
  script.kernel("conv", Phase::forward, {x}, {y});
  script.kernel("conv", Phase::forward, {y}, {z}, {z});
  script.kernel("conv_backward", Phase::backward, {y}, {g}, {y});
  script.kernel("conv_backward", Phase::backward, {x, g}, {}, {x, g});
  const Outcome of = outcome_of("vdnn", script.trace(), machine_of(10_MiB));
  EXPECT_EQ(of.plan.evictions, (std::vector<Eviction>{{x, {1}, Tier::host, {}, true, {{2}}}}));
  EXPECT_EQ(of.plan.prefetches, (std::vector<Prefetch>{{x, {3}, false, {}, {{4}}}}));
  EXPECT_EQ(of.result.iteration, kMillisecond * 52) << "2 MiB of X find room beside k3, the others once Y is dead";
  EXPECT_EQ(of.result.peak.device, 10_MiB);
  EXPECT_EQ(outcome_of("vdnn", script.trace(), machine_of(32_MiB)).plan.moves(), 0u) << "all fits";
  EXPECT_EQ(outcome_of("vdnn:shrink=1", script.trace(), machine_of(32_MiB)).plan.moves(), 2u);
}

// W is persistent (1 MiB). Unselected A, B, C (12), W and the largest working set (A and B: 8) are 21 MiB: A, used
// first, goes. It comes once 13 MiB are free: when k3 has ended and C is dead.
TEST(PolicyExamples, FlashNeuronOffloadsTheFirstTensorsUntilTheRestFits) {
  Script script;
  const TensorId w = script.tensor(1, true), a = script.tensor(4), b = script.tensor(4), c = script.tensor(4);
  script.kernel("k0", Phase::forward, {w}, {a});
  script.kernel("k1", Phase::forward, {a}, {b});
  script.kernel("k2", Phase::forward, {b}, {c});
  script.kernel("k3", Phase::backward, {c}, {}, {c});
  script.kernel("k4", Phase::backward, {b}, {}, {b});
  script.kernel("k5", Phase::backward, {a}, {}, {a});
  const Outcome of = outcome_of("flashneuron", script.trace(), machine_of(18_MiB));
  EXPECT_EQ(of.plan.evictions, (std::vector<Eviction>{{a, {1}, Tier::ssd, {}, false, {{3}}}}));
  EXPECT_EQ(of.plan.prefetches, (std::vector<Prefetch>{{a, {4}, false, {}, {}}}));
  EXPECT_EQ(of.result.iteration, kMillisecond * 60);
}

// k2 wants 4 MiB: A leaves, 4 ms. k3 wants A: B leaves and A comes, 8 ms. k4 wants B, and A and C are dead: 4 ms.
TEST(PolicyExamples, LmsMovesWholeTensorsOneAfterTheOther) {
  Script script;
  const TensorId a = script.tensor(4), b = script.tensor(4), c = script.tensor(4);
  script.kernel("k0", Phase::forward, {}, {a});
  script.kernel("k1", Phase::forward, {}, {b});
  script.kernel("k2", Phase::forward, {}, {c});
  script.kernel("k3", Phase::backward, {a, c}, {}, {a, c});
  script.kernel("k4", Phase::backward, {b}, {}, {b});
  EXPECT_EQ(outcome_of("lms", script.trace(), machine_of(8_MiB)).result.iteration, kMillisecond * 66);
  EXPECT_EQ(outcome_of("lms-mod", script.trace(), machine_of(8_MiB)).result.iteration, kMillisecond * 66);
}

// A recomputed by hand: dropped after k0, made again before k3.
TEST(PolicyExamples, APlanMayRecompute) {
  Plan plan;
  plan.recomputations = {{{0}, {0}, {3}, {{0}}}};
  const Outcome of = outcome_of("g10-host", trace_e(), machine_of(15_MiB), plan);
  EXPECT_EQ(of.result.iteration, kMillisecond * 50);
  EXPECT_EQ(of.result.peak.device, 15_MiB);
}

TEST(PolicyExamples, WhatReadsADiscardedTensorIsFound) {
  const Trace trace = trace_e();
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  const auto refused = [&](const Recomputation& one) {
    Plan plan;
    plan.recomputations = {one};
    const auto valid = validate_plan(plan, trace, "", lifetimes, machine_of(15_MiB), true, "plan");
    const auto result = simulate(trace, lifetimes, machine_of(15_MiB), policy_by_name("g10-host")->traits, &plan);
    EXPECT_EQ(valid.has_value(), result.has_value()) << "the simulation stops before it reads what is not there";
    return valid ? std::string() : valid.error().message;
  };
  EXPECT_EQ(refused({{0}, {0}, {3}, {{0}}}), "");
  EXPECT_TRUE(refused({{0}, {0}, {2}, {{0}}}).contains("must use tensor 0"));
  EXPECT_TRUE(refused({{0}, {0}, {3}, {{1}}}).contains("not last written by kernel 1"));
  EXPECT_TRUE(refused({{0}, {0}, {3}, {}}).contains("names no kernels"));
  EXPECT_TRUE(refused({{9}, {0}, {3}, {{0}}}).contains("no tensor 9"));
}

}  // namespace
}  // namespace spillway
