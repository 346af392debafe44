// TENSILE's first plan from predicted times, and its update, planned, checked and simulated to the end.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analysis/lifetimes.h"
#include "machines/sim/simulate.h"
#include "plan/machine_file.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

// Each way moves 1 MiB in a millisecond.
MachineModel slow_machine(Bytes device) {
  MachineModel model = *load_machine("a100");
  model.device.memory = device;
  model.link = {.to_device = {1'048'576'000}, .from_device = {1'048'576'000}, .latency = {}};
  return model;
}

constexpr Nanos ms(std::uint64_t count) { return Nanos{count * 1'000'000}; }

// Four kernels of 10 ms. k0 makes A (6 MiB); k1 B (2); k2 reads B and makes C (8); k3 reads A and C.
Trace four_kernels(bool replays = false) {
  Trace trace{.name = "four kernels", .source = "a test"};
  for (const std::uint64_t mib : {6, 2, 8}) trace.tensors.push_back({.name = "t", .bytes = Bytes{mib << 20}});
  const auto add = [&](const std::vector<std::uint32_t>& reads, const std::vector<std::uint32_t>& writes,
                       std::vector<TensorId> frees) {
    Kernel kernel{.name = "k", .duration = ms(10)};
    for (const std::uint32_t id : reads) kernel.reads.push_back({.tensor = {id}, .end = trace.tensors[id].bytes});
    for (const std::uint32_t id : writes) kernel.writes.push_back({.tensor = {id}, .end = trace.tensors[id].bytes});
    kernel.frees = std::move(frees);
    if (replays) kernel.replay = Replayable{};
    trace.kernels.push_back(std::move(kernel));
  };
  add({}, {0}, {});
  add({}, {1}, {});
  add({1}, {2}, {{1}});
  add({0, 2}, {}, {{0}, {2}});
  return trace;
}

Trace with_times(Trace trace, const std::vector<Nanos>& times) {
  for (std::size_t at = 0; at < times.size(); ++at) trace.kernels[at].duration = times[at];
  return trace;
}

Plan planned(const Trace& reckoned, const MachineModel& model, bool predicted) {
  const Lifetimes lifetimes = analyse_lifetimes(reckoned);
  Plan plan = plan_tensile({reckoned, lifetimes, model, policy_by_name("tensile")->traits.parameters});
  plan.reckoned = reckoned_from(reckoned, predicted);
  return plan;
}

SimulationResult followed(const Trace& trace, const MachineModel& model, const Plan& plan) {
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  const auto valid = validate_plan(plan, trace, "", lifetimes, model, true, "plan");
  EXPECT_TRUE(valid.has_value()) << valid.error().message;
  return *simulate(trace, lifetimes, model, policy_by_name("tensile")->traits, &plan);
}

// It reckons with 30 ms of k1 and 1 ms of k2, so A's copy would return from 35 to 41 ms. k3 is ready at 30 and fetches
// it by itself: 6 ms late.
TEST(ColdStart, AWrongPredictionCostsTheFirstIterationOnly) {
  const Trace trace = four_kernels();
  const MachineModel model = slow_machine(16_MiB);
  const Plan exact = planned(trace, model, false);
  const Plan wrong = planned(with_times(trace, {ms(10), ms(30), ms(1), ms(10)}), model, true);
  ASSERT_EQ(exact.prefetches, (std::vector<Prefetch>{{{0}, {2}, true, ms(4), {}}}));
  ASSERT_EQ(wrong.prefetches, (std::vector<Prefetch>{{{0}, {1}, true, ms(25), {}}}));
  EXPECT_EQ(followed(trace, model, exact).cold_iteration, ms(40));
  const SimulationResult result = followed(trace, model, wrong);
  EXPECT_EQ(result.cold_iteration, ms(46));
  EXPECT_EQ(result.iteration, ms(40));
  Plan from_a_file = wrong;
  from_a_file.reckoned.reset();
  EXPECT_EQ(followed(trace, model, from_a_file).iteration, ms(46)) << "nobody knows what it reckons with";
}

// 30 % more or less is no reason for another plan.
TEST(ColdStart, OfMeasuredTimesNoiseChangesNoPlan) {
  const Trace trace = four_kernels();
  const MachineModel model = slow_machine(16_MiB);
  const Plan measured = planned(with_times(trace, {ms(10), ms(20), ms(1), ms(10)}), model, false);
  EXPECT_EQ(followed(trace, model, measured).iteration, followed(trace, model, measured).cold_iteration);
  EXPECT_GT(followed(trace, model, measured).iteration, ms(40));
  const Plan longer = planned(with_times(trace, {ms(10), ms(60), ms(1), ms(10)}), model, false);
  const SimulationResult result = followed(trace, model, longer);
  EXPECT_LT(result.iteration, result.cold_iteration) << "81 ms are more than 30 % off, so it plans again";
}

// Where A can be computed again in 10 ms and the link is slow, one plan swaps and the other one recomputes.
TEST(ColdStart, TheNewPlanMayRecompute) {
  const Trace trace = four_kernels(true);
  MachineModel model = slow_machine(15_MiB);
  model.link.to_device = model.link.from_device = {104'857'600};  // 60 ms for A
  const Trace slow = with_times(trace, {ms(10), ms(200), ms(200), ms(10)});
  const Plan exact = planned(trace, model, false), wrong = planned(slow, model, true);
  const Plan reverse = planned(trace, model, true);
  ASSERT_FALSE(exact.recomputations.empty());
  ASSERT_TRUE(wrong.recomputations.empty());
  EXPECT_EQ(followed(trace, model, wrong).iteration, followed(trace, model, exact).iteration);
  EXPECT_GT(followed(trace, model, wrong).cold_iteration, followed(trace, model, exact).cold_iteration);
  EXPECT_EQ(followed(slow, model, reverse).iteration, followed(slow, model, planned(slow, model, false)).iteration);
  EXPECT_EQ(followed(slow, model, reverse).recomputed_kernels, 0u);
}

// Whatever was predicted: the plan is valid, and the one after the update is that of the measured times.
TEST(ColdStartProperty, TheUpdatedPlanIsThatOfTheMeasuredTimes) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>(), {.layers_most = 6, .bytes_most = 16 << 20});
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const auto percent = *rc::gen::inRange<std::uint64_t>(20, 120);
    MachineModel model = slow_machine(std::max(4_MiB, Bytes{std::ranges::max(lifetimes.live).value / 100 * percent}));
    model.host.keeps_copies = *rc::gen::inRange<std::uint64_t>(0, 2);
    const PolicyTraits traits = policy_by_name("tensile")->traits;
    if (shortfall(lifetimes, model, traits) != PerTier<Bytes>{}) return;
    Trace predicted = trace;
    for (Kernel& kernel : predicted.kernels) kernel.duration = Nanos{*rc::gen::inRange<std::uint64_t>(1, 1 << 24)};
    const Plan cold = planned(predicted, model, true), exact = planned(trace, model, false);
    const auto valid = validate_plan(cold, trace, "", lifetimes, model, true, "plan");
    if (!valid) RC_FAIL(valid.error().message);
    const std::vector<Nanos> waits(trace.kernels.size());
    const auto updated = revise_tensile({trace, lifetimes, model, traits.parameters, waits}, cold);
    RC_ASSERT(updated == exact);
    RC_ASSERT(!revise_tensile({trace, lifetimes, model, traits.parameters, waits}, exact));
    const auto result = simulate(trace, lifetimes, model, traits, &cold);
    RC_ASSERT(result.has_value());
    if (!result->feasible) return;
    RC_ASSERT(result->peak.device <= model.device.memory);
    RC_ASSERT(result->iteration >= result->ideal && result->cold_iteration >= result->ideal);
  }));
}

}  // namespace
}  // namespace spillway
