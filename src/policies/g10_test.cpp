#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "plan/machine_file.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

MachineModel machine(Bytes device) {
  MachineModel model = *load_machine("a100");
  model.device.memory = device;
  model.host.memory = 64_MiB;
  model.ssd.capacity = 1_GiB;
  return model;
}

TEST(PlannersProperty, PlansPassTheValidatorAndMoveNothingThatFits) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>());
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const Bytes peak = std::ranges::max(lifetimes.live);
    const auto percent = *rc::gen::inRange<std::uint64_t>(20, 120);
    const MachineModel model = machine({std::max<std::uint64_t>(1, peak.value / 100 * percent)});
    for (const PlanFn planner :
         {plan_g10_gds, plan_g10, plan_g10_clean, plan_furthest, plan_furthest_ahead, plan_furthest_lean}) {
      const bool use_host = planner != plan_g10_gds;
      Plan plan = planner({trace, lifetimes, model});
      plan.trace_hash = "h";
      const auto valid = validate_plan(plan, trace, "h", lifetimes, model, use_host);
      RC_ASSERT(valid.has_value());
      if (peak <= model.device.memory) RC_ASSERT(plan.evictions.empty() && plan.prefetches.empty());
      if (planner == plan_g10 || planner == plan_g10_gds) RC_ASSERT(plan.evictions.size() == plan.prefetches.size());
      RC_ASSERT(plan.evictions.size() >= plan.prefetches.size());
      RC_ASSERT(plan.overcommitted <= excess(peak, model.device.memory));
      const Plan again = planner({trace, lifetimes, model});
      RC_ASSERT(again.evictions == plan.evictions && again.prefetches == plan.prefetches);
    }
  }));
}

// Two weights of 8 MiB each on a device of 12: one of them leaves while the other works.
TEST(G10, TheTensorWithTheLongestUselessStayLeavesAndReturnsInTime) {
  Trace trace{.name = "two", .source = "test"};
  for (std::uint32_t id = 0; id < 2; ++id)
    trace.tensors.push_back({.name = "w", .bytes = 8_MiB, .kind = TensorKind::weight, .persistent = true});
  for (const std::uint32_t used : {0u, 0u, 1u, 1u, 1u, 1u, 1u, 1u})
    trace.kernels.push_back(
        {.name = "k", .phase = Phase::forward, .duration = Nanos{10'000'000}, .reads = {{{used}, {}, 8_MiB}}});
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  const Plan plan = plan_g10({trace, lifetimes, machine(12_MiB)});
  // Weight 0 is idle for six kernels; its eviction to the SSD takes 4.2 ms, its return 2.8 ms.
  const auto evicted = std::ranges::find(plan.evictions, TensorId{0}, &Eviction::tensor);
  ASSERT_NE(evicted, plan.evictions.end());
  EXPECT_EQ(evicted->after, KernelId{1});
  EXPECT_EQ(evicted->to, Tier::ssd);
  const auto prefetched = std::ranges::find(plan.prefetches, TensorId{0}, &Prefetch::tensor);
  ASSERT_NE(prefetched, plan.prefetches.end());
  EXPECT_EQ(prefetched->at, KernelId{7});
}

}  // namespace
}  // namespace spillway
