#include "plan/validate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "trace/random_trace.h"

namespace spillway {
namespace {

// Six kernels of 1 ms. Tensor 0 is a weight that kernels 1 and 5 use, tensor 1 an activation from kernel 0 to 4, tensor
// 2 is small, tensor 3 (born at 0) is carried into tensor 4, which kernel 2 reads.
Trace small_trace() {
  Trace trace{.name = "small", .source = "test"};
  trace.tensors = {{.name = "weight", .bytes = 8_MiB, .persistent = true},
                   {.name = "activation", .bytes = 4_MiB},
                   {.name = "small", .bytes = 1_KiB, .persistent = true},
                   {.name = "new state", .bytes = 2_MiB},
                   {.name = "old state", .bytes = 2_MiB, .carried_from = TensorId{3}}};
  for (std::uint32_t at = 0; at < 6; ++at) trace.kernels.push_back({.name = "k", .duration = Nanos{1'000'000}});
  const auto use = [&](std::uint32_t tensor, std::uint32_t kernel, bool writes) {
    auto& list = writes ? trace.kernels[kernel].writes : trace.kernels[kernel].reads;
    list.push_back({{tensor}, {}, trace.tensors[tensor].bytes});
  };
  use(0, 1, false);
  use(0, 5, true);
  use(1, 0, true);
  use(1, 4, false);
  use(2, 1, false);
  use(3, 0, true);
  use(4, 2, false);
  trace.kernels[2].frees = {TensorId{4}};
  return trace;
}

struct ValidatePlan : testing::Test {
  Trace trace = small_trace();
  Lifetimes lifetimes = analyse_lifetimes(trace);
  MachineModel machine;
  Plan plan;

  ValidatePlan() {
    machine.device.memory = 16_MiB;
    machine.host.memory = 8_MiB;
    machine.ssd.capacity = 64_MiB;
    plan.trace_name = "small";
    plan.trace_hash = "right";
  }
  void move(std::uint32_t tensor, std::uint32_t after, std::uint32_t at, Tier to = Tier::ssd) {
    plan.evictions.push_back({{tensor}, {after}, to});
    plan.prefetches.push_back({{tensor}, {at}});
  }
  Result<> validate() const { return validate_plan(plan, trace, "right", lifetimes, machine); }
  void expect_valid() const {
    const auto valid = validate();
    EXPECT_TRUE(valid) << valid.error().message;
  }
  void expect_refused(std::string_view says) const {
    const auto valid = validate();
    ASSERT_FALSE(valid);
    EXPECT_TRUE(valid.error().message.contains(says)) << valid.error().message;
  }
};

TEST_F(ValidatePlan, RefusesHostMemoryUnderAPolicyThatDoesNotUseItAndNamesTheFile) {
  move(0, 1, 4, Tier::host);
  plan.policy = "g10-gds";
  const auto valid = validate_plan(plan, trace, "right", lifetimes, machine, false, "my.plan");
  ASSERT_FALSE(valid);
  EXPECT_TRUE(valid.error().message.starts_with("my.plan: evictions[0]")) << valid.error().message;
  EXPECT_TRUE(valid.error().message.contains("g10-gds")) << valid.error().message;
}

TEST_F(ValidatePlan, AcceptsMovesInsideInactivePeriods) {
  expect_valid();
  move(0, 1, 4);
  expect_valid();
}

TEST_F(ValidatePlan, AcceptsAPrefetchOfTheNextIterationAndAnEvictionWithoutOne) {
  move(0, 5, 0);  // The weight rests from kernel 5 to kernel 1 of the next iteration.
  expect_valid();
  plan.prefetches.clear();
  expect_valid();
}

TEST_F(ValidatePlan, WhatWaitsToBeFreedMayLeaveAndNeedNotComeBack) {
  trace.kernels[3].frees = {TensorId{1}};
  trace.kernels[4].reads.clear();
  trace.kernels[1].reads.push_back({{1}, {}, trace.tensors[1].bytes});
  lifetimes = analyse_lifetimes(trace);
  plan.evictions = {{{1}, {1}, Tier::ssd}};
  expect_valid();
  plan.prefetches = {{{1}, {3}}};
  expect_refused("prefetches[0]: tensor 1 is dead, in use, or only waits to be freed");
  plan.evictions = {{{1}, {3}, Tier::ssd}};
  plan.prefetches.clear();
  expect_refused("evictions[0]: tensor 1 is dead");
}

TEST_F(ValidatePlan, RefusesAPlanOfAnotherTrace) {
  plan.trace_hash = "wrong";
  expect_refused("made for trace small (wrong)");
}

TEST_F(ValidatePlan, RefusesUnknownAndSmallTensorsAndUnknownKernels) {
  move(9, 1, 4);
  expect_refused("evictions[0]: there is no tensor 9");
  plan.evictions[0] = {{0}, {6}, Tier::ssd};
  expect_refused("evictions[0]: there is no kernel 6");
  plan.evictions[0] = {{2}, {1}, Tier::ssd};
  expect_refused("evictions[0]: tensor 2 has 1 KiB");
}

TEST_F(ValidatePlan, RefusesMovesOfDeadTensors) {
  plan.evictions = {{{1}, {4}, Tier::ssd}};  // It is freed when kernel 4 has ended.
  expect_refused("evictions[0]: tensor 1 is dead");
  plan.evictions = {{{1}, {1}, Tier::ssd}};
  plan.prefetches = {{{1}, {5}}};
  expect_refused("prefetches[0]: tensor 1 is dead");
}

TEST_F(ValidatePlan, RefusesAnEvictionThatLeavesNoKernelBeforeTheNextUse) {
  plan.evictions = {{{0}, {4}, Tier::ssd}};
  expect_refused("evictions[0]: tensor 0");
  plan.evictions = {{{0}, {0}, Tier::ssd}};
  expect_refused("evictions[0]: tensor 0");
}

TEST_F(ValidatePlan, RefusesAPrefetchWithoutALowerCopy) {
  plan.prefetches = {{{0}, {3}}};
  expect_refused("prefetches[0]: no lower tier holds tensor 0");
  plan.evictions = {{{0}, {3}, Tier::ssd}};
  expect_refused("prefetches[0]: no lower tier holds tensor 0");
}

TEST_F(ValidatePlan, RefusesTheSameMoveTwice) {
  plan.evictions = {{{0}, {1}, Tier::ssd}, {{0}, {2}, Tier::host}};
  expect_refused("evictions[1]: tensor 0 has left before");
  plan.evictions.pop_back();
  plan.prefetches = {{{0}, {3}}, {{0}, {4}}};
  expect_refused("prefetches[1]: tensor 0 has been asked back before");
}

TEST_F(ValidatePlan, RefusesCommandsOutOfOrderAndATargetThatIsNone) {
  plan.evictions = {{{0}, {2}, Tier::ssd}, {{1}, {1}, Tier::ssd}};
  expect_refused("evictions[1]: it stands after one of a later kernel");
  plan.evictions = {{{0}, {1}, Tier::device}};
  expect_refused("evictions[0]: it goes to the device");
}

TEST_F(ValidatePlan, RefusesWhatDoesNotFitBelow) {
  move(1, 0, 3, Tier::host);
  move(0, 1, 4, Tier::host);
  plan.prefetches = {{{1}, {3}}, {{0}, {4}}};
  expect_refused("it puts 12 MiB into host memory");
  machine.host.memory = 12_MiB;
  expect_valid();
  machine.ssd.capacity = 7_MiB;
  plan.evictions[1].to = Tier::ssd;
  expect_refused("it puts 8 MiB into ssd memory");
}

TEST_F(ValidatePlan, CountsWhatStaysBelowAcrossTheEndOfTheIteration) {
  move(0, 5, 0, Tier::host);
  machine.host.memory = 8_MiB;
  expect_valid();
  machine.host.memory = 7_MiB;
  expect_refused("it puts 8 MiB into host memory");
}

TEST_F(ValidatePlan, KnowsThatACarriedTensorHasAnotherNameInTheNextIteration) {
  move(3, 1, 4);  // It rests until kernel 2 of the next iteration, where it is tensor 4.
  expect_valid();
  plan.prefetches[0].at = {0};
  expect_refused("prefetches[0]: tensor 3 is dead");
  plan.prefetches[0] = {{4}, {1}};
  expect_refused("prefetches[0]: tensor 4 is dead");
}

TEST_F(ValidatePlan, CountsACarriedTensorBesideItsSuccessor) {
  plan.evictions = {
      {{3}, {0}, Tier::host}};  // While kernel 1 runs, the host holds this one and that of the iteration before.
  machine.host.memory = 4_MiB;
  expect_valid();
  machine.host.memory = 3_MiB;
  expect_refused("it puts 4 MiB into host memory by kernel 1");
}

RC_GTEST_PROP(ValidatePlanProperty, SurvivesAnyPlanAndAcceptsNoMoveOfADeadTensor, ()) {
  const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>());
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  MachineModel machine;
  machine.host.memory = machine.ssd.capacity = 64_GiB;
  const auto tensors = static_cast<std::uint32_t>(trace.tensors.size());
  const auto kernels = static_cast<std::uint32_t>(trace.kernels.size());
  const TensorId tensor{*rc::gen::inRange(0u, tensors + 1)};
  const KernelId after{*rc::gen::inRange(0u, kernels + 1)};
  Plan plan;
  const auto delay = [] { return Nanos{*rc::gen::element<std::uint64_t>(0, 1, 1'000'000'000)}; };
  const auto awaited = [&] {
    return *rc::gen::arbitrary<bool>() ? std::optional(KernelId{*rc::gen::inRange(0u, kernels + 1)}) : std::nullopt;
  };
  const bool during = *rc::gen::arbitrary<bool>();
  plan.evictions.push_back({tensor, after, Tier::ssd, delay(), during, awaited()});
  if (*rc::gen::arbitrary<bool>())
    plan.prefetches.push_back({tensor, {*rc::gen::inRange(0u, kernels + 1)}, false, delay(), awaited()});
  if (!validate_plan(plan, trace, "", lifetimes, machine)) return;
  // Independently of periods: the tensor is alive after that kernel and neither it nor the next one in time uses it
  // then.
  const Lifetime& life = lifetimes.tensors[tensor.value];
  const bool self_carried = trace[tensor].carried_from == tensor;
  const bool alive = trace[tensor].persistent || (self_carried && (after < life.death || after >= life.birth)) ||
                     ((life.alive_at_start || after >= life.birth) && (life.alive_at_end || after < life.death));
  RC_ASSERT(alive);
  const auto uses_it = [&](const std::vector<Access>& accesses) {
    return std::ranges::find(accesses, tensor, &Access::tensor) != accesses.end();
  };
  if (during) RC_ASSERT(uses_it(trace[after].reads) && !uses_it(trace[after].writes));
  for (const auto& by :
       {plan.evictions.front().awaited_by, plan.prefetches.empty() ? std::nullopt : plan.prefetches.front().awaited_by})
    RC_ASSERT(!by || by->value < kernels);
  RC_ASSERT(std::ranges::find(life.uses, KernelId{(after.value + 1) % kernels}) == life.uses.end());
}

}  // namespace
}  // namespace spillway
