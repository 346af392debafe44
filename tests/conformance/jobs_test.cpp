#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "analysis/lifetimes.h"
#include "machines/sim/simulate_jobs.h"
#include "plan/machine_file.h"
#include "policies/policies.h"
#include "policies/tensile.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

constexpr Nanos kMs{1'000'000};

MachineModel a100_of(Bytes device) {
  MachineModel model = *load_machine("a100");
  model.device.memory = device;
  return model;
}

PolicyTraits traits_of(std::string_view name) { return policy_by_name(name)->traits; }

struct OneKernel {
  Trace trace{.name = "one", .source = "a test"};
  Lifetimes lifetimes;
  OneKernel() {
    trace.tensors.push_back({.name = "a", .bytes = 1_MiB});
    Kernel kernel{.name = "k", .duration = kMs * 10};
    kernel.writes = {{.tensor = {0}, .end = 1_MiB}};
    kernel.frees = {{0}};
    trace.kernels = {kernel};
    lifetimes = analyse_lifetimes(trace);
  }
  DeviceJob job(Nanos arrival, std::uint32_t iterations = 1, double weight = 1) const {
    return {"one", trace, lifetimes, weight, arrival, iterations};
  }
};

// From 0 to 5 ms the first has the device alone; then both have a half: it ends at 15. The second has 5 ms left then.
TEST(Jobs, KernelsShareTheDevice) {
  const OneKernel one;
  const auto result = simulate_jobs({one.job({}), one.job(kMs * 5)}, a100_of(1_GiB), traits_of("ideal"), {});
  ASSERT_TRUE(result && result->feasible);
  EXPECT_EQ(result->jobs[0].first_iteration, kMs * 15);
  EXPECT_EQ(result->jobs[1].first_iteration, kMs * 15) << "from 5 to 20 ms";
  EXPECT_EQ(result->end, kMs * 20);
  EXPECT_EQ(result->jobs[0].stall, Nanos{}) << "that they share the device is no wait for memory";
}

// What a planner cannot do with its share is said, not run without a plan.
TEST(Jobs, APlanThatLacksMemoryIsInfeasible) {
  const OneKernel one;
  Plan plan;
  plan.shortfall.device = 3_MiB;
  const PlanJobs plans = [&](const std::vector<PresentJob>& present) { return std::vector(present.size(), plan); };
  const auto result = simulate_jobs({one.job({}), one.job({})}, a100_of(1_GiB), traits_of("flashneuron"), plans);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->feasible);
  EXPECT_EQ(result->shortfall.device, 3_MiB);
}

// Weights 3 and 1: the first ends after 10 / (3/4) ms; by then the second has done a third of its work.
TEST(Jobs, WeightsAreShares) {
  const OneKernel one;
  const auto result = simulate_jobs({one.job({}, 1, 3), one.job({}, 1, 1)}, a100_of(1_GiB), traits_of("ideal"), {});
  ASSERT_TRUE(result && result->feasible);
  EXPECT_NEAR(seconds(result->jobs[0].first_iteration), 0.040 / 3, 1e-8);
  EXPECT_NEAR(seconds(result->jobs[1].first_iteration), 0.020, 1e-8);
}

// The other job has nothing to move: host memory is not cut into equal parts.
TEST(Jobs, TensilesJobsShareHostMemoryAsTheyCome) {
  Trace large{.name = "large", .source = "a test"};
  for (const Bytes bytes : {6_MiB, 2_MiB, 8_MiB}) large.tensors.push_back({.name = "t", .bytes = bytes});
  const auto kernel = [&](const std::vector<std::uint32_t>& uses, std::vector<TensorId> frees) {
    Kernel& one = large.kernels.emplace_back(Kernel{.name = "k", .duration = kMs * 10, .frees = std::move(frees)});
    for (const std::uint32_t id : uses) one.writes.push_back({.tensor = {id}, .end = large.tensors[id].bytes});
  };
  kernel({0}, {});
  kernel({1}, {});
  kernel({2}, {{1}, {2}});
  kernel({0}, {{0}});
  const Lifetimes lifetimes = analyse_lifetimes(large);
  const OneKernel one;
  MachineModel machine = a100_of(15_MiB);
  machine.host.memory = 7_MiB;
  machine.link.to_device = machine.link.from_device = {1'048'576'000};
  const auto plans =
      plan_tensile_jobs(std::vector<Problem>{{large, lifetimes, machine, traits_of("tensile").parameters},
                                             {one.trace, one.lifetimes, machine, traits_of("tensile").parameters}});
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].evictions.size(), 1u);
  EXPECT_TRUE(plans[1].evictions.empty());
}

TEST(Jobs, CostsAreThoseOfTensile) {
  JobsResult with, without;
  without.device_peak = Bytes{100};
  without.jobs = {{.first_iteration = {}, .mean_iteration = Nanos{10}, .stall = {}, .peak = {}}};
  with.device_peak = Bytes{60};
  with.jobs = {{.first_iteration = {}, .mean_iteration = Nanos{20}, .stall = {}, .peak = {}}};
  const JobsCost cost = cost_of(with, without);
  EXPECT_DOUBLE_EQ(cost.memory_saving_ratio, 0.4);
  EXPECT_DOUBLE_EQ(cost.extra_overhead_ratio, 2);
  EXPECT_DOUBLE_EQ(cost.cost_benefit_ratio, 0.2);
}

// Each policy, whatever jobs come and go: the capacity holds, each job runs all of its iterations, none is faster than
// alone on a device without a limit, and the same jobs give the same result.
TEST(JobsProperty, HoldTheCapacityAndEnd) {
  EXPECT_TRUE(rc::check([] {
    const auto count = *rc::gen::inRange<std::size_t>(1, 4);
    std::vector<Trace> traces;
    std::vector<Lifetimes> lifetimes;
    for (std::size_t at = 0; at < count; ++at)
      traces.push_back(random_trace(*rc::gen::arbitrary<std::uint64_t>(), {.layers_most = 4, .bytes_most = 16 << 20}));
    Bytes peaks;
    for (const Trace& trace : traces) {
      lifetimes.push_back(analyse_lifetimes(trace));
      peaks += std::ranges::max(lifetimes.back().live);
    }
    std::vector<DeviceJob> jobs;
    for (std::size_t at = 0; at < count; ++at)
      jobs.push_back({"job", traces[at], lifetimes[at], *rc::gen::element(1.0, 2.0, 0.5),
                      kMs * *rc::gen::inRange<std::uint64_t>(0, 50), *rc::gen::inRange<std::uint32_t>(1, 4)});
    MachineModel model = a100_of(std::max(4_MiB, Bytes{peaks.value / 100 * *rc::gen::inRange<std::uint64_t>(10, 120)}));
    model.host.memory = Bytes{peaks.value / 100 * *rc::gen::element<std::uint64_t>(0, 0, 20, 200)};
    model.host.keeps_copies = *rc::gen::inRange<std::uint64_t>(0, 2);
    for (const Policy& policy : kPolicies) {
      PlanJobs plan;
      if (policy.plan != nullptr)
        plan = [&](const std::vector<PresentJob>& present) {
          std::vector<Problem> problems;
          for (const PresentJob& one : present)
            problems.push_back({traces[one.job], lifetimes[one.job], model, policy.traits.parameters});
          if (policy.plan == plan_tensile) return plan_tensile_jobs(problems);
          std::vector<Plan> plans;
          for (const Problem& problem : problems) plans.push_back(policy.plan(problem));
          return plans;
        };
      const auto result = simulate_jobs(jobs, model, policy.traits, plan);
      RC_ASSERT(result.has_value());
      if (!result->feasible) continue;
      if (!policy.traits.unlimited_device) RC_ASSERT(result->device_peak <= model.device.memory);
      for (std::size_t at = 0; at < count; ++at) {
        Nanos ideal;
        for (const Kernel& kernel : traces[at].kernels) ideal += kernel.gap + kernel.duration;
        RC_ASSERT(result->jobs[at].mean_iteration >= ideal);
        RC_ASSERT(result->jobs[at].peak <= result->device_peak);
      }
      const auto again = simulate_jobs(jobs, model, policy.traits, plan);
      RC_ASSERT(again->end == result->end && again->device_peak == result->device_peak);
    }
  }));
}

}  // namespace
}  // namespace spillway
