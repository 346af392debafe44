#include "policies/copies.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "plan/machine_file.h"
#include "policies/policies.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

// A tensor of 8 MiB that each kernel reads ('r'), writes ('w') or leaves alone ('.').
struct OneTensor {
  explicit OneTensor(std::string_view uses, bool persistent = true) {
    trace.tensors.push_back({.name = "t",
                             .bytes = 8_MiB,
                             .kind = persistent ? TensorKind::weight : TensorKind::activation,
                             .persistent = persistent});
    for (const char use : uses) {
      Kernel kernel;
      kernel.duration = Nanos{1'000'000};
      if (use == 'r') kernel.reads = {{{0}, {}, 8_MiB}};
      if (use == 'w') kernel.writes = {{{0}, {}, 8_MiB}};
      trace.kernels.push_back(kernel);
    }
    lifetimes = analyse_lifetimes(trace);
  }
  Trace trace{.name = "one", .source = "test"};
  Lifetimes lifetimes;
};

TEST(Copies, WhatNobodyWritesIsAlwaysClean) {
  const OneTensor one("r..r..");
  Copies copies(one.trace, one.lifetimes, false);
  ASSERT_EQ(one.lifetimes.periods.size(), 2u);
  for (const std::size_t period : {0u, 1u}) {
    EXPECT_TRUE(copies.is_clean(period, Tier::ssd));
    EXPECT_EQ(copies.only_tier(period), Tier::ssd);
    EXPECT_TRUE(copies.plan(period, Tier::ssd).empty());
    EXPECT_TRUE(copies.is_worth_keeping(period, Tier::ssd));
  }
}

TEST(Copies, TheFirstPeriodAfterAWriteStoresTheTensorForTheOthers) {
  const OneTensor one("r..r..w..");  // A weight: read, read again, then changed by the optimizer.
  Copies copies(one.trace, one.lifetimes, false);
  ASSERT_EQ(one.lifetimes.periods.size(), 3u);
  const std::size_t between_reads = 0, before_write = 1, after_write = 2;
  for (const std::size_t period : {between_reads, before_write, after_write})
    EXPECT_FALSE(copies.is_clean(period, Tier::ssd));
  EXPECT_EQ(copies.plan(between_reads, Tier::ssd),
            (std::vector<std::size_t>{after_write, between_reads, before_write}));
  EXPECT_FALSE(copies.is_worth_keeping(between_reads, Tier::ssd));
  EXPECT_TRUE(copies.is_clean(before_write, Tier::ssd));
  EXPECT_TRUE(copies.is_written_anyway(after_write, Tier::ssd));
  EXPECT_FALSE(copies.is_clean(after_write, Tier::ssd));
  EXPECT_EQ(copies.plan(after_write, Tier::ssd), (std::vector<std::size_t>{between_reads}));
  EXPECT_TRUE(copies.is_clean(between_reads, Tier::ssd));
  EXPECT_TRUE(copies.is_worth_keeping(after_write, Tier::ssd));
  EXPECT_FALSE(copies.is_worth_keeping(between_reads, Tier::ssd));
}

TEST(Copies, ATensorThatIsBornInTheIterationIsNewThere) {
  const OneTensor one("r..r..r", false);
  Copies copies(one.trace, one.lifetimes, false);
  ASSERT_EQ(one.lifetimes.periods.size(), 2u);
  EXPECT_FALSE(copies.is_clean(0, Tier::ssd));
  copies.plan(0, Tier::ssd);
  EXPECT_FALSE(copies.is_clean(0, Tier::ssd));
  EXPECT_TRUE(copies.is_clean(1, Tier::ssd));
}

TEST(Copies, WhatGoesToHostMemoryThatKeepsNoneHasNoneUntilTheNextWrite) {
  const OneTensor one("w..r..r..r..w..");
  Copies copies(one.trace, one.lifetimes, false);
  copies.plan(1, Tier::host);
  EXPECT_TRUE(copies.plan(0, Tier::ssd).empty());
  EXPECT_FALSE(copies.is_clean(1, Tier::ssd) || copies.is_clean(2, Tier::ssd));
  EXPECT_FALSE(copies.is_worth_keeping(0, Tier::ssd));
}

TEST(Copies, HostMemoryThatKeepsThemHasAllBetweenTwoWrites) {
  const OneTensor one("w..r..r..r..w..");
  Copies copies(one.trace, one.lifetimes, true);
  EXPECT_FALSE(copies.ahead_of(0));
  EXPECT_EQ(copies.ahead_of(2), 1u);
  EXPECT_FALSE(copies.held_with(1).before || copies.held_with(1).after);
  copies.plan(1, Tier::host);
  EXPECT_EQ(copies.only_tier(2), Tier::host);
  EXPECT_TRUE(copies.is_clean(2, Tier::host));
  EXPECT_FALSE(copies.is_clean(2, Tier::ssd));
  EXPECT_FALSE(copies.ahead_of(2));           // It leaves without being copied.
  EXPECT_EQ(copies.held_with(3).before, 1u);  // The copy stays from there on.
  EXPECT_EQ(copies.held_with(0).after, 1u);   // And would be made that much earlier.
  EXPECT_FALSE(copies.is_worth_keeping(1, Tier::host));
  copies.plan(3, Tier::host);
  EXPECT_TRUE(copies.is_worth_keeping(1, Tier::host));
  EXPECT_FALSE(copies.is_worth_keeping(3, Tier::host));
  EXPECT_TRUE(copies.held_with(2).is_held);
}

TEST(Copies, WhatNobodyWritesIsHeldAlways) {
  const OneTensor one("r..r..");
  Copies copies(one.trace, one.lifetimes, true);
  EXPECT_FALSE(copies.only_tier(0));
  EXPECT_TRUE(copies.is_clean(0, Tier::ssd) && copies.is_clean(0, Tier::host));
  EXPECT_TRUE(copies.held_with(0).always && !copies.held_with(0).is_held);
  copies.plan(0, Tier::host);
  EXPECT_EQ(copies.only_tier(1), Tier::host);
  EXPECT_TRUE(copies.held_with(1).is_held);
}

// Goes through a few iterations and keeps for each tensor whether the tier where it goes has its bytes.
std::vector<bool> clean_in_fact(const Trace& trace, const Lifetimes& lifetimes, const Copies& copies,
                                const std::vector<std::size_t>& planned, const std::vector<Tier>& tiers) {
  std::vector<bool> clean(lifetimes.periods.size());
  std::vector<std::optional<Tier>> copy(trace.tensors.size());
  for (int iteration = 0; iteration < 3; ++iteration)
    for (std::uint32_t kernel = 0; kernel < trace.kernels.size(); ++kernel) {
      for (const TensorId born : lifetimes.births[kernel]) copy[born.value].reset();
      for (const std::size_t period : planned)
        if (const auto& away = lifetimes.periods[period]; away.before.value == kernel)
          if (!copies.is_worth_keeping(period, tiers[period])) copy[away.tensor.value].reset();
      for (const Access& write : trace.kernels[kernel].writes) copy[write.tensor.value].reset();
      for (const std::size_t period : planned)
        if (const auto& away = lifetimes.periods[period]; away.after.value == kernel) {
          clean[period] = copy[away.tensor.value] == tiers[period];
          copy[away.tensor.value] = tiers[period];
        }
    }
  return clean;
}

TEST(CopiesProperty, ArePlannedAsTheyAreFound) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>());
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    Copies copies(trace, lifetimes, *rc::gen::arbitrary<bool>());
    std::vector<std::size_t> planned;
    std::vector<Tier> tiers(lifetimes.periods.size());
    std::vector<bool> written_anyway(lifetimes.periods.size()), is_clean(lifetimes.periods.size());
    std::vector<bool> is_planned(lifetimes.periods.size());
    for (std::size_t period = 0; period < lifetimes.periods.size(); ++period) {
      const auto& away = lifetimes.periods[period];
      const Tensor& tensor = trace[away.tensor];
      if (away.wraps && !away.last && !tensor.persistent && tensor.carried_from != away.tensor) continue;
      if (*rc::gen::inRange(0, 3) > 0) planned.push_back(period);
    }
    for (std::size_t left = planned.size(); left > 1; --left)
      std::swap(planned[left - 1], planned[*rc::gen::inRange<std::size_t>(0, left)]);
    const auto note = [&] {
      for (std::size_t period = 0; period < lifetimes.periods.size(); ++period) {
        written_anyway[period] = copies.is_written_anyway(period);
        is_clean[period] = copies.is_clean(period, Tier::ssd) || copies.is_clean(period, Tier::host);
      }
    };
    note();
    for (const std::size_t period : planned) {
      tiers[period] = copies.only_tier(period).value_or(*rc::gen::element(Tier::host, Tier::ssd));
      const auto cheaper = copies.plan(period, tiers[period]);
      is_planned[period] = true;
      for (std::size_t other = 0; other < lifetimes.periods.size(); ++other) {
        const bool now_clean = copies.is_clean(other, Tier::ssd) || copies.is_clean(other, Tier::host);
        const bool changed = now_clean != is_clean[other] || copies.is_written_anyway(other) != written_anyway[other];
        if (changed && !is_planned[other]) RC_ASSERT(std::ranges::count(cheaper, other) == 1);
      }
      note();
    }
    const std::vector<bool> clean = clean_in_fact(trace, lifetimes, copies, planned, tiers);
    for (const std::size_t period : planned) RC_ASSERT(clean[period] == copies.is_clean(period, tiers[period]));
  }));
}

// Two frozen weights of 8 MiB in turns on a device of 12, over a link that would not carry them both ways in time.
TEST(G10Clean, FrozenWeightsLeaveWithoutBeingCopied) {
  OneTensor one("r...r...");
  one.trace.tensors.push_back(one.trace.tensors.front());
  for (const std::size_t kernel : {2u, 6u}) one.trace.kernels[kernel].reads = {{{1}, {}, 8_MiB}};
  for (Kernel& kernel : one.trace.kernels) kernel.duration = Nanos{10'000'000};
  const Lifetimes lifetimes = analyse_lifetimes(one.trace);
  MachineModel machine = *load_machine("a100");
  machine.device.memory = 12_MiB;
  machine.host.memory = {};
  machine.ssd.write = BytesPerSecond{1'000'000};
  const Plan plan = plan_g10_clean({one.trace, lifetimes, machine});
  EXPECT_EQ(plan.overcommitted, Bytes{});
  ASSERT_FALSE(plan.prefetches.empty());
  EXPECT_TRUE(std::ranges::all_of(plan.prefetches, &Prefetch::keeps_copy));
  EXPECT_GT(plan_g10({one.trace, lifetimes, machine}).overcommitted, Bytes{});
}

// A weight of 8 MiB is read, then an activation as large lives, and the weight is written; the device holds 12 MiB. The
// link out has no time in between, only between the write and the next iteration's read.
TEST(G10Clean, AWeightIsStoredAheadOfTheKernelsThatNeedItsRoom) {
  OneTensor one("r....w......");
  one.trace.tensors.push_back({.name = "activation", .bytes = 8_MiB, .kind = TensorKind::activation});
  one.trace.kernels[1].writes = one.trace.kernels[3].reads = {{{1}, {}, 8_MiB}};
  const Lifetimes lifetimes = analyse_lifetimes(one.trace);
  MachineModel machine = *load_machine("a100");
  machine.device.memory = 12_MiB;
  machine.ssd.capacity = {};
  machine.link.from_device = {8_MiB .value * 250};  // 4 ms, four kernels
  const Plan plan = plan_g10_clean({one.trace, lifetimes, machine});
  EXPECT_EQ(plan.overcommitted, Bytes{});
  EXPECT_EQ(plan.evictions.size(), 2u);
  ASSERT_EQ(plan.prefetches.size(), 2u);
  EXPECT_TRUE(std::ranges::any_of(plan.prefetches, &Prefetch::keeps_copy));
  machine.host.keeps_copies = 0;
  EXPECT_GT(plan_g10_clean({one.trace, lifetimes, machine}).overcommitted, Bytes{});
}

}  // namespace
}  // namespace spillway
