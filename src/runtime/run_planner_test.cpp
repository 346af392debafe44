#include "runtime/run_planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "machines/sim/simulate.h"
#include "plan/machine_file.h"
#include "plan/plan_file.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "runtime/save_proposed.h"
#include "runtime/tensor_heap.h"
#include "trace/format.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

PlanningInput input_of(const Trace& trace, std::string_view policy, std::uint64_t percent,
                       Bytes block_bytes = kBlockBytes) {
  PlanningInput input;
  input.block_bytes = block_bytes;
  input.iteration.trace = trace;
  input.machine = *load_machine("a100");
  input.policy = *run_policy(policy);
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  input.iteration.births = lifetimes.births;
  input.iteration.signatures.resize(trace.kernels.size());
  std::uint64_t end = 1'000 * block_bytes.value;
  for (const Tensor& tensor : trace.tensors) {
    input.persistent.push_back(tensor.persistent ? std::optional(end) : std::nullopt);
    end += tensor.bytes.value;
  }
  input.machine.device.memory = {std::ranges::max(lifetimes.live).value / 100 * percent};
  input.machine.host.memory = {};
  return input;
}

constexpr BlockRange kApart{{100}, 900};
std::optional<BlockRange> set_apart(Bytes bytes) {
  return bytes <= kBlockBytes * kApart.count ? std::optional(kApart) : std::nullopt;
}

Trace training(std::uint64_t seed) { return random_trace(seed, {.layers_most = 8, .bytes_most = 24 << 20}); }

TEST(RunPlannerProperty, WhatAPlanNamesLiesWhereItsTensorsDo) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = training(*rc::gen::arbitrary<std::uint64_t>());
    const std::uint64_t percent = *rc::gen::inRange<std::uint64_t>(40, 90);
    const Bytes block_bytes = *rc::gen::element(kBlockBytes, 4_MiB);
    const PlanningInput input = input_of(trace, "g10", percent, block_bytes);
    const auto proposed = plan_run(input, set_apart);
    if (!proposed) RC_ASSERT(proposed.error().message.contains("raise --device-memory"));
    if (!proposed || !proposed->plan) RC_DISCARD("nothing to plan, or too little memory");
    const Proposal& plan = *proposed->plan;
    RC_ASSERT(plan.run.followed.kernels == trace.kernels.size());
    RC_ASSERT(plan.births.size() == trace.kernels.size());
    for (std::size_t k = 0; k < plan.births.size(); ++k)
      for (std::size_t birth = 0; birth < plan.births[k].size(); ++birth)
        if (const auto place = plan.births[k][birth]) {
          const Bytes bytes = trace[input.iteration.births[k][birth]].bytes;
          RC_ASSERT(*place >= block_bytes.value * kApart.first.value);
          RC_ASSERT(*place + bytes.value <= block_bytes.value * kApart.end().value);
        }
    for (std::size_t row = 0; row < plan.run.followed.homes.size(); ++row)
      RC_ASSERT(plan.blocks.tensors[row].bytes == block_bytes * plan.run.followed.homes[row].count);
    for (const Eviction& eviction : plan.run.followed.commands.evictions) {
      RC_ASSERT(plan.run.attention.at_end[eviction.after.value]);
      RC_ASSERT(eviction.tensor.value < plan.run.followed.homes.size());
    }
    for (const Prefetch& prefetch : plan.run.followed.commands.prefetches)
      RC_ASSERT(plan.run.attention.at_start[prefetch.at.value]);
    for (const Foresight::Row& row : plan.run.followed.rows) RC_ASSERT(std::ranges::is_sorted(row.uses));
  }));
}

TEST(RunPlanner, WhatFitsNeedsNoPlan) {
  const auto proposed = plan_run(input_of(training(1), "auto", 300), set_apart);
  ASSERT_TRUE(proposed);
  EXPECT_EQ(proposed->plan, nullptr);
}

TEST(RunPlanner, APolicyThatIsAskedForIsTaken) {
  const auto proposed = plan_run(input_of(training(3), "g10-once", 60), set_apart);
  ASSERT_TRUE(proposed && proposed->plan);
  EXPECT_EQ(proposed->plan->run.followed.commands.policy, "g10-once");
  EXPECT_GT(proposed->plan->figures.link_bound, Nanos{});
}

// Seconds of the iteration, and half of those that its bytes take on their ways.
double cost(const Proposal& proposed, const MachineModel& machine) {
  const auto way = [](Bytes bytes, BytesPerSecond link, BytesPerSecond ssd) {
    return seconds(transfer_time(bytes, std::min(link, ssd)));
  };
  return proposed.run.followed.commands.predicted_seconds.value() +
         0.5 * (way(proposed.figures.predicted_in, machine.link.to_device, machine.ssd_read()) +
                way(proposed.figures.predicted_out, machine.link.from_device, machine.ssd_write()));
}

// Or one that costs hardly more and moves less.
TEST(RunPlanner, OfAllPoliciesThePlanThatCostsLeastIsTaken) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Trace trace = training(seed);
    const PlanningInput input = input_of(trace, "auto", 55);
    const auto taken = plan_run(input, set_apart);
    if (!taken || !taken->plan) continue;
    std::vector<std::pair<double, Bytes>> costs;  // and what moves
    for (const Policy& policy : kPolicies) {
      if (!policy.plan || !input.policy.allows(policy)) continue;
      const auto other = plan_run(input_of(trace, policy.name, 55), set_apart);
      if (!other || !other->plan) continue;
      costs.emplace_back(cost(*other->plan, input.machine),
                         other->plan->figures.predicted_in + other->plan->figures.predicted_out);
    }
    ASSERT_FALSE(costs.empty());
    ++compared;
    const double least = std::ranges::min(costs).first;
    EXPECT_LE(cost(*taken->plan, input.machine), least * 1.0051) << "seed " << seed;
    for (const auto& [other, bytes] : costs)
      if (other < least * 1.0049) {
        EXPECT_LE(taken->plan->figures.predicted_in + taken->plan->figures.predicted_out, bytes) << "seed " << seed;
      }
  }
  EXPECT_GT(compared, 10);
}

// What `auto` runs keeps copies on the SSD, whatever plan it follows, and a plan's prediction knows of them.
TEST(RunPlanner, AutoReckonsWithTheCopiesThatItsRunsKeep) {
  std::array<int, 2> different{};  // made by the run, given to it
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const Trace trace = training(seed);
    PlanningInput input = input_of(trace, "auto", 45);
    GivenPlan given{.file = "my.plan", .plan = {}};
    if (seed % 2 == 0) {
      const auto before = plan_run(input_of(trace, "g10", 45), set_apart);
      if (!before || !before->plan) continue;
      given.plan = before->plan->run.followed.commands;
      input.given = &given;
    }
    const auto taken = plan_run(input, set_apart);
    if (!taken || !taken->plan) continue;
    EXPECT_EQ(taken->plan->figures.given, seed % 2 == 0 ? 1u : 0u);
    const Plan& plan = taken->plan->run.followed.commands;
    PolicyTraits traits = policy_by_name(plan.policy)->traits;
    MachineModel machine = input.machine;
    machine.device.memory += spare_memory(kBlockBytes);
    const auto seconds_with = [&](bool copies) {
      traits.keeps_copies = copies;
      const Trace all = with_tensors(taken->plan->blocks, trace, replaced_tensors(trace, TensorHeap::kLarge));
      return seconds(
          simulate(all, analyse_lifetimes(all), machine, traits, &plan, Foreknowledge::iteration)->iteration);
    };
    EXPECT_EQ(plan.predicted_seconds, seconds_with(true)) << "seed " << seed;
    different[seed % 2] += plan.predicted_seconds != seconds_with(false);
  }
  for (const int some : different) EXPECT_GT(some, 0);
}

struct GivenToARun : testing::Test {
  Trace trace = training(7);
  PlanningInput input = input_of(trace, "auto", 48);
  GivenPlan given{.file = "my.plan", .plan = {}};
  void SetUp() override {
    const auto before = plan_run(input_of(trace, "g10-once", 48), set_apart);
    ASSERT_TRUE(before && before->plan);
    EXPECT_FALSE(before->plan->figures.given);
    given.plan = before->plan->run.followed.commands;
    input.given = &given;
  }
  // Another plan is made then, and the refusal holds these words.
  void expect_refused(std::string_view says) {
    const auto planned = plan_run(input, set_apart);
    ASSERT_TRUE(planned);
    EXPECT_TRUE(planned->refused.contains(says)) << planned->refused;
    EXPECT_TRUE(planned->refused.starts_with("my.plan: ")) << planned->refused;
    ASSERT_TRUE(planned->plan);
    EXPECT_FALSE(planned->plan->figures.given);
  }
};

TEST_F(GivenToARun, APlanOfAnotherRunIsFollowedWhateverTimesAndAddressesItHas) {
  for (Kernel& kernel : input.iteration.trace.kernels) kernel.duration.value *= 2;
  for (auto& place : input.persistent)
    if (place) *place += 7 * kBlockBytes.value;
  const auto planned = plan_run(input, set_apart);
  ASSERT_TRUE(planned && planned->plan);
  EXPECT_EQ(planned->refused, "");
  EXPECT_TRUE(planned->plan->figures.given);
  EXPECT_EQ(planned->plan->run.followed.commands.evictions, given.plan.evictions);
  EXPECT_EQ(planned->plan->run.followed.commands.prefetches, given.plan.prefetches);
  EXPECT_TRUE(planned->plan->run.followed.commands.predicted_seconds);
}

TEST_F(GivenToARun, APlanForAnotherIterationIsRefusedAndTheRunPlansByItself) {
  given.plan.trace_shape.kernels += 1;
  expect_refused("it was made for another iteration than this run's: it has ");
}

TEST_F(GivenToARun, APlanThatTheValidatorRefusesIsNotFollowed) {
  given.plan.evictions.front().tensor.value = 1'000'000;
  expect_refused("evictions[0]: there is no tensor 1000000");
}

TEST_F(GivenToARun, APlanThatMovesNothingIsNotFollowed) {
  given.plan.evictions.clear();
  given.plan.prefetches.clear();
  expect_refused("it moves nothing");
}

TEST_F(GivenToARun, TheTraceThatItWasMadeForIsWrittenWithIt) {
  std::string name = testing::TempDir() + "planned-XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const ProposalFiles files = plan_files(name + "/blocks");
  const auto planned = plan_run(input, set_apart);
  ASSERT_TRUE(planned && planned->plan);
  const auto saved = save_proposed(*planned->plan, "train.py", files);
  ASSERT_TRUE(saved) << saved.error().message;
  const auto loaded = load_trace(files.trace);
  const auto again = load_given_plan(files.plan);
  ASSERT_TRUE(loaded && again);
  EXPECT_EQ(loaded->trace.name, "train.py");
  const auto valid =
      validate_plan(again->plan, loaded->trace, loaded->hash, analyse_lifetimes(loaded->trace), input.machine);
  EXPECT_TRUE(valid) << valid.error().message;
  EXPECT_EQ(again->plan.trace_shape, shape_of(loaded->trace));

  const ProposalFiles unwritable = {.trace = files.trace, .plan = name + "/none/blocks.plan"};
  EXPECT_FALSE(save_proposed(*planned->plan, "train.py", unwritable));
  EXPECT_FALSE(std::filesystem::exists(files.trace)) << "without a plan of its own";
  std::filesystem::remove_all(name);
}

TEST(GivenPlan, MustBeOfAPolicyThatARunCanFollow) {
  const std::string file = testing::TempDir() + "g10-gds.plan";
  Plan plan;
  for (const std::string_view policy : {"g10-gds", "uvm", "magic"}) {
    plan.policy = policy;
    ASSERT_TRUE(save_plan(file, plan));
    const auto given = load_given_plan(file);
    ASSERT_FALSE(given);
    EXPECT_TRUE(given.error().message.contains(policy)) << given.error().message;
  }
  std::filesystem::remove(file);
  EXPECT_FALSE(load_given_plan(file));
}

TEST(RunPlanner, PredictsThatLessMemoryTakesNoLessTime) {
  const Trace trace = training(3);
  Nanos ideal;
  for (const Kernel& kernel : trace.kernels) ideal += kernel.gap + kernel.duration;
  const Bytes peak = std::ranges::max(analyse_lifetimes(trace).live);
  const std::array budgets{peak * 3, peak, Bytes{peak.value / 2}, kBlockBytes};
  const auto predicted =
      predict(trace, *load_machine("a100"), kBlockBytes, *run_policy(kAuto), budgets, [] { return true; });
  ASSERT_TRUE(predicted);
  ASSERT_EQ(predicted->size(), budgets.size());
  EXPECT_EQ((*predicted)[0].iteration, ideal);
  EXPECT_EQ((*predicted)[0].policy, "");
  ASSERT_TRUE((*predicted)[2].iteration);
  EXPECT_GE(*(*predicted)[2].iteration, ideal);
  EXPECT_NE((*predicted)[2].policy, "");
  EXPECT_FALSE((*predicted)[3].iteration);
  for (int last : {0, 1, 7}) {  // also while it looks at one budget
    int asked = 0;
    EXPECT_FALSE(predict(trace, *load_machine("a100"), kBlockBytes, *run_policy(kAuto), budgets, [&] {
      return asked++ < last;
    })) << last;
    EXPECT_EQ(asked, last + 1);
  }
}

// Weights of 16 MiB, one kernel for each; averages that are replaced in each iteration, one after the other; and, in
// the last kernel, a small tensor.
Trace averages(int weights, int count, Bytes bytes) {
  Trace trace{.name = "averages", .source = "test"};
  const auto add = [&](Bytes size, TensorKind kind, bool persistent) {
    trace.tensors.push_back({.name = "t", .bytes = size, .kind = kind, .persistent = persistent});
    return TensorId{static_cast<std::uint32_t>(trace.tensors.size() - 1)};
  };
  const auto kernel = [&](TensorId reads) -> Kernel& {
    const Access access{reads, {}, trace[reads].bytes};
    return trace.kernels.emplace_back(
        Kernel{.name = "k", .phase = Phase::forward, .duration = Nanos{10'000'000}, .reads = {access}});
  };
  for (int i = 0; i < weights; ++i) kernel(add(16_MiB, TensorKind::weight, true));
  for (int i = 0; i < count; ++i) {
    const TensorId old = add(bytes, TensorKind::other, false), average = add(bytes, TensorKind::other, false);
    trace.tensors[old.value].carried_from = average;
    Kernel& replaces = kernel(old);
    replaces.writes.push_back({average, {}, bytes});
    replaces.frees.push_back(old);
  }
  const TensorId small = add(512_KiB, TensorKind::other, false);
  trace.kernels.back().writes.push_back({small, {}, 512_KiB});
  trace.kernels.back().frees.push_back(small);
  EXPECT_TRUE(validate(trace, "averages"));
  return trace;
}
constexpr Bytes kUnplanned = spare_memory(kBlockBytes) + 512_KiB;

TEST(RunPlanner, PredictsWithRoomForWhatNoPlanMoves) {
  const Trace trace = averages(4, 1, 16_MiB);
  const std::array budgets{kUnplanned + 80_MiB, kUnplanned + 64_MiB, kUnplanned + 32_MiB, kUnplanned};
  const auto predicted =
      predict(trace, *load_machine("a100"), kBlockBytes, *run_policy(kAuto), budgets, [] { return true; });
  ASSERT_TRUE(predicted);
  EXPECT_EQ((*predicted)[0].policy, "") << "all weights have room beside both averages, in the spare blocks, too";
  EXPECT_EQ((*predicted)[0].iteration, Nanos{50'000'000});
  EXPECT_NE((*predicted)[1].policy, "") << "all weights have room, but not beside both averages";
  ASSERT_TRUE((*predicted)[2].iteration);
  EXPECT_LT(*(*predicted)[2].iteration, Nanos{55'000'000})
      << "a plan counts on room that the averages take for a while";
  EXPECT_FALSE((*predicted)[3].iteration) << "nothing is left beside what no plan moves";
}

TEST(RunPlanner, PlansWithTheRoomThatReplacedTensorsLeave) {
  const Trace trace = averages(6, 4, 16_MiB);
  std::vector<std::string> counted_on;
  for (const Bytes memory : {64_MiB, 96_MiB, 128_MiB, 160_MiB}) {
    PlanningInput input = input_of(trace, "furthest-lean", 0);
    input.machine.device.memory = memory;
    const auto proposed = plan_run(input, set_apart);
    ASSERT_TRUE(proposed);
    counted_on.push_back(proposed->plan ? proposed->plan->run.followed.commands.machine_overrides.front() : "");
  }
  EXPECT_EQ(counted_on, (std::vector<std::string>{
                            fmt::format("device.memory={}", (32_MiB).value),  // half of all at least
                            fmt::format("device.memory={}", (48_MiB).value),
                            fmt::format("device.memory={}", (64_MiB).value),  // half of what the averages take is left
                            ""}));
}

TEST(RunPlanner, TooLittleMemoryIsToldHowMuchItTakesAtLeast) {
  PlanningInput input = input_of(training(3), "g10", 0);
  input.unplanned = 82_MiB;
  input.budget = 64_MiB;
  input.machine.device.memory = {};
  const auto proposed = plan_run(input, set_apart);
  ASSERT_FALSE(proposed);
  EXPECT_EQ(proposed.error().message,
            "what no plan moves (small tensors, and some blocks of 2 MiB that stay free) takes 82 MiB of the device's "
            "64 MiB; raise --device-memory to 84MiB at least");
}

// Averages that take more than a plan may count on at all: there is nothing to plan for a weight that has room.
TEST(RunPlanner, WhereNoPlanMovesAnythingPagingIsAsGood) {
  const Trace trace = averages(1, 4, 8_MiB);
  PlanningInput input = input_of(trace, "g10", 0);
  input.machine.device.memory = 40_MiB;
  const auto proposed = plan_run(input, set_apart);
  ASSERT_TRUE(proposed) << proposed.error().message;
  EXPECT_FALSE(proposed->plan);
  const auto predicted = predict(trace, *load_machine("a100"), kBlockBytes, *run_policy("g10"),
                                 std::array{kUnplanned + 40_MiB}, [] { return true; });
  ASSERT_TRUE(predicted);
  EXPECT_TRUE((*predicted)[0].iteration);
}

TEST(RunPlanner, PredictsForThePolicyThatIsAskedFor) {
  const Trace trace = training(3);
  const std::array budgets{Bytes{std::ranges::max(analyse_lifetimes(trace).live).value / 2}, kBlockBytes};
  for (const std::string_view policy : {"g10-clean", "furthest-lean"}) {
    const auto predicted =
        predict(trace, *load_machine("a100"), kBlockBytes, *run_policy(policy), budgets, [] { return true; });
    ASSERT_TRUE(predicted);
    EXPECT_EQ((*predicted)[0].policy, policy);
    EXPECT_FALSE((*predicted)[1].iteration) << "too little";
  }
}

TEST(RunPlanner, WithoutAddressesThereIsNoPlanAndAReason) {
  const auto proposed = plan_run(input_of(training(3), "auto", 60), [](Bytes) { return std::nullopt; });
  ASSERT_FALSE(proposed);
  EXPECT_TRUE(proposed.error().message.contains("no addresses"));
}

}  // namespace
}  // namespace spillway
