#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plan/machine_file.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "trace/random_trace.h"
#include "trace/validate.h"

namespace spillway {
namespace {

constexpr Bytes kEach = 8_MiB;

// Weights of 8 MiB, and kernels of 10 ms that use one each. There is no host memory.
struct Weights {
  struct Use {
    std::uint32_t weight;
    bool writes = false;
  };
  Weights(std::uint32_t weights, const std::vector<Use>& uses) {
    for (std::uint32_t id = 0; id < weights; ++id)
      trace.tensors.push_back({.name = "w", .bytes = kEach, .kind = TensorKind::weight, .persistent = true});
    for (const Use& use : uses) {
      Kernel kernel{
          .name = "k", .phase = Phase::forward, .duration = Nanos{10'000'000}, .reads = {{{use.weight}, {}, kEach}}};
      if (use.writes) kernel.writes = kernel.reads;
      trace.kernels.push_back(kernel);
    }
    EXPECT_TRUE(validate(trace, "weights"));
  }
  // Written by the first of these kernels, read by the others and freed by the last; they use no weights.
  void add_activation(std::uint32_t first, std::uint32_t last) {
    const TensorId id{static_cast<std::uint32_t>(trace.tensors.size())};
    trace.tensors.push_back({.name = "a", .bytes = kEach, .kind = TensorKind::activation, .persistent = false});
    for (std::uint32_t kernel = first; kernel <= last; ++kernel) {
      Kernel& uses = trace.kernels[kernel];
      uses.reads.clear();
      uses.writes.clear();
      (kernel == first ? uses.writes : uses.reads).push_back({id, {}, kEach});
    }
    trace.kernels[last].frees.push_back(id);
    EXPECT_TRUE(validate(trace, "weights"));
  }
  // Written by these kernels; the next iteration frees it.
  TensorId add_gradient(const std::vector<std::uint32_t>& writers) {
    const TensorId id{static_cast<std::uint32_t>(trace.tensors.size())};
    trace.tensors.push_back(
        {.name = "g", .bytes = kEach, .kind = TensorKind::gradient, .persistent = false, .carried_from = id});
    for (const std::uint32_t kernel : writers) trace.kernels[kernel].writes.push_back({id, {}, kEach});
    trace.kernels[0].frees.push_back(id);
    EXPECT_TRUE(validate(trace, "weights"));
    return id;
  }
  Plan plan(Bytes device, Plan (*planner)(const Problem&) = plan_furthest) const {
    MachineModel machine = *load_machine("a100");
    machine.device.memory = device;
    machine.host.memory = {};
    return planner({trace, analyse_lifetimes(trace), machine});
  }

  Trace trace{.name = "weights", .source = "test"};
};

std::vector<TensorId> evicted(const Plan& plan) {
  std::vector<TensorId> tensors;
  for (const Eviction& eviction : plan.evictions) tensors.push_back(eviction.tensor);
  std::ranges::sort(tensors);
  return tensors;
}

TEST(Furthest, WhatFitsMovesNothing) {
  EXPECT_EQ(Weights(2, {{0, true}, {0}, {1, true}, {1}}).plan(kEach * 2).moves(), 0u);
}

// Of three weights two fit. The first is away from kernel 3 to 8.
TEST(Furthest, WhatIsNeededLastLeavesAtOnceAndComesBackAsEarlyAsItFits) {
  const Plan plan =
      Weights(3, {{0, true}, {0}, {0}, {1, true}, {2, true}, {1}, {2}, {1, true}, {1, true}, {0}, {0}}).plan(kEach * 2);
  const auto eviction = std::ranges::find(plan.evictions, TensorId{0}, &Eviction::tensor);
  ASSERT_NE(eviction, plan.evictions.end());
  EXPECT_EQ(eviction->after, KernelId{2});
  EXPECT_EQ(eviction->to, Tier::ssd);
  const auto prefetch = std::ranges::find(plan.prefetches, TensorId{0}, &Prefetch::tensor);
  ASSERT_NE(prefetch, plan.prefetches.end());
  EXPECT_EQ(prefetch->at, KernelId{7}) << "weight 2 leaves after kernel 6";
}

// Three weights fit, but not beside what lives in kernels 3 and 4. Weight 0 is needed last, but until kernel 2 ends.
TEST(FurthestAhead, WhatCannotLeaveInTimeStays) {
  Weights weights(3, {{1, true}, {2, true}, {0, true}, {0}, {0}, {1}, {2}, {0}});
  weights.add_activation(3, 4);
  EXPECT_EQ(evicted(weights.plan(kEach * 3)), (std::vector{TensorId{0}}));
  EXPECT_EQ(weights.plan(kEach * 3).overcommitted, kEach);
  EXPECT_EQ(evicted(weights.plan(kEach * 3, plan_furthest_ahead)), (std::vector{TensorId{2}}));
}

// Three weights fit, but not beside what lives from kernel 2 to 5. Weight 1 is needed a little sooner than weight 0,
// and never changes.
TEST(Furthest, WhatNeedNotBeWrittenLeavesFirst) {
  Weights weights(3, {{0, true}, {1}, {0, true}, {0}, {0}, {0}, {2, true}, {1}, {0}});
  weights.add_activation(2, 5);
  EXPECT_EQ(evicted(weights.plan(kEach * 3)), (std::vector{TensorId{1}}));
  EXPECT_EQ(evicted(weights.plan(kEach * 3, plan_furthest_ahead)), (std::vector{TensorId{1}}));
}

// Three weights fit, but not beside what lives in kernels 5 and 6. Weight 1 never changes and is needed right after
// these and what uses weight 2; weight 0, which does change, so many kernels later.
std::vector<TensorId> evicted_with(std::uint32_t kernels, Plan (*planner)(const Problem&)) {
  std::vector<Weights::Use> uses{{0, true}, {1}, {1}, {0}, {2}, {2}, {2, true}, {2}};
  uses.insert(uses.end(), kernels, {1});
  uses.push_back({0});
  Weights weights(3, uses);
  weights.add_activation(5, 6);
  return evicted(weights.plan(kEach * 3, planner));
}
// Going and coming back over and over would cost more than writing what is away for so much longer.
TEST(Furthest, WhatIsNeededSoonAgainStaysThoughItNeedNotBeWritten) {
  EXPECT_EQ(evicted_with(1, plan_furthest), (std::vector{TensorId{1}}));
  EXPECT_EQ(evicted_with(8, plan_furthest), (std::vector{TensorId{0}}));
}
TEST(FurthestLean, WhatNeedNotBeWrittenLeavesThoughItIsNeededMuchSooner) {
  EXPECT_EQ(evicted_with(8, plan_furthest_lean), (std::vector{TensorId{1}}));
  EXPECT_EQ(evicted_with(40, plan_furthest_lean), (std::vector{TensorId{0}}));
}

// Two weights fit, but not beside what lives in kernels 4 to 8 and 11 to 15. Weight 0 never changes, so it leaves in
// the first of these; in the second it is in use, and weight 1 must leave, which is needed in neither.
TEST(FurthestLean, WhatOthersMakeNeedlessStays) {
  std::vector<Weights::Use> uses(18, {0});
  uses.front() = uses.back() = {1, true};
  Weights weights(2, uses);
  weights.add_activation(4, 8);
  weights.add_activation(11, 15);
  for (std::uint32_t kernel = 11; kernel <= 15; ++kernel)
    weights.trace.kernels[kernel].reads.push_back({{0}, {}, kEach});
  ASSERT_TRUE(validate(weights.trace, "weights"));
  EXPECT_EQ(evicted(weights.plan(kEach * 2, plan_furthest_lean)), (std::vector{TensorId{1}}));
}

// Of what goes to host memory the SSD keeps no copies, though what was chosen for the SSD before it now stays or not.
// Some of these have tensors that go to either.
TEST(FurthestLean, PlansWhereTensorsGoToTheHostAndToTheSsd) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Trace trace = random_trace(seed);
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    MachineModel machine = *load_machine("a100");
    machine.device.memory = {std::ranges::max(lifetimes.live).value / 2};
    machine.host.memory = 64_MiB;
    machine.host.keeps_copies = seed % 2;
    machine.ssd.capacity = 1_GiB;
    const Plan plan = plan_furthest_lean({trace, lifetimes, machine});
    EXPECT_TRUE(validate_plan(plan, trace, plan.trace_hash, lifetimes, machine, true)) << seed;
  }
}

// A gradient that the optimizer (kernel 3) has used and the next iteration frees would be there for nothing.
TEST(Furthest, WhatNobodyNeedsAnyMoreLeavesAndDoesNotComeBack) {
  Weights weights(2, {{0, true}, {0, true}, {0}, {0, true}, {1, true}, {1}, {1}, {1, true}});
  const TensorId gradient = weights.add_gradient({2});
  weights.trace.kernels[3].reads.push_back({gradient, {}, kEach});
  ASSERT_TRUE(validate(weights.trace, "weights"));
  for (const auto planner : {plan_furthest, plan_furthest_ahead, plan_furthest_lean, plan_g10_clean, plan_g10}) {
    const Plan plan = weights.plan(kEach * 2, planner);
    EXPECT_EQ(std::ranges::count(plan.evictions, gradient, &Eviction::tensor), planner != plan_g10);
    EXPECT_EQ(std::ranges::count(plan.prefetches, gradient, &Prefetch::tensor), 0);
  }
}

// A frozen weight and a gradient leave after kernel 2. The weight cannot be back in time; all the same the way out is
// the gradient's alone.
TEST(Furthest, WhatIsLateAndNeedNotBeWrittenLeavesTheLinkToOthers) {
  Weights weights(3, {{0}, {0}, {0}, {1, true}, {2, true}, {1, true}, {2, true}, {0}});
  const TensorId gradient = weights.add_gradient({1, 2});
  MachineModel machine = *load_machine("a100");
  machine.device.memory = kEach * 2;
  machine.host.memory = kEach;
  machine.ssd.write = BytesPerSecond{500'000'000};
  machine.ssd.read = BytesPerSecond{1'000'000};
  const Plan plan = plan_furthest({weights.trace, analyse_lifetimes(weights.trace), machine});
  const auto eviction = std::ranges::find(plan.evictions, gradient, &Eviction::tensor);
  ASSERT_NE(eviction, plan.evictions.end());
  EXPECT_EQ(eviction->to, Tier::ssd);
}

}  // namespace
}  // namespace spillway
