#include "policies/copies.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
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
  Copies copies(one.trace, one.lifetimes);
  ASSERT_EQ(one.lifetimes.periods.size(), 2u);
  for (const std::size_t period : {0u, 1u}) {
    EXPECT_TRUE(copies.is_clean(period));
    EXPECT_TRUE(copies.plan(period).empty());
    EXPECT_TRUE(copies.is_worth_keeping(period));
  }
}

TEST(Copies, TheFirstPeriodAfterAWriteStoresTheTensorForTheOthers) {
  const OneTensor one("r..r..w..");  // A weight: read, read again, then changed by the optimizer.
  Copies copies(one.trace, one.lifetimes);
  ASSERT_EQ(one.lifetimes.periods.size(), 3u);
  const std::size_t between_reads = 0, before_write = 1, after_write = 2;
  for (const std::size_t period : {between_reads, before_write, after_write}) EXPECT_FALSE(copies.is_clean(period));
  EXPECT_EQ(copies.plan(between_reads), (std::vector<std::size_t>{after_write, between_reads, before_write}));
  EXPECT_FALSE(copies.is_worth_keeping(between_reads));
  EXPECT_TRUE(copies.is_clean(before_write));
  EXPECT_TRUE(copies.is_written_anyway(after_write));
  EXPECT_FALSE(copies.is_clean(after_write));
  EXPECT_EQ(copies.plan(after_write), (std::vector<std::size_t>{between_reads}));
  EXPECT_TRUE(copies.is_clean(between_reads));
  EXPECT_TRUE(copies.is_worth_keeping(after_write));
  EXPECT_FALSE(copies.is_worth_keeping(between_reads));
}

TEST(Copies, ATensorThatIsBornInTheIterationIsNewThere) {
  const OneTensor one("r..r..r", false);
  Copies copies(one.trace, one.lifetimes);
  ASSERT_EQ(one.lifetimes.periods.size(), 2u);
  EXPECT_FALSE(copies.is_clean(0));
  copies.plan(0);
  EXPECT_FALSE(copies.is_clean(0));
  EXPECT_TRUE(copies.is_clean(1));
}

TEST(Copies, WhatGoesElsewhereHasNoneUntilTheNextWrite) {
  const OneTensor one("w..r..r..r..w..");
  Copies copies(one.trace, one.lifetimes);
  copies.plan_elsewhere(1);
  EXPECT_TRUE(copies.plan(0).empty());
  EXPECT_FALSE(copies.is_clean(1) || copies.is_clean(2));
  EXPECT_FALSE(copies.is_worth_keeping(0));
}

// Goes through a few iterations and keeps for each tensor whether the SSD has its bytes.
std::vector<bool> clean_in_fact(const Trace& trace, const Lifetimes& lifetimes, const Copies& copies,
                                const std::vector<std::size_t>& planned) {
  std::vector<bool> has_copy(trace.tensors.size()), clean(lifetimes.periods.size());
  for (int iteration = 0; iteration < 3; ++iteration)
    for (std::uint32_t kernel = 0; kernel < trace.kernels.size(); ++kernel) {
      for (const TensorId born : lifetimes.births[kernel]) has_copy[born.value] = false;
      for (const std::size_t period : planned)
        if (const auto& away = lifetimes.periods[period]; away.before.value == kernel)
          has_copy[away.tensor.value] = has_copy[away.tensor.value] && copies.is_worth_keeping(period);
      for (const Access& write : trace.kernels[kernel].writes) has_copy[write.tensor.value] = false;
      for (const std::size_t period : planned)
        if (const auto& away = lifetimes.periods[period]; away.after.value == kernel) {
          clean[period] = has_copy[away.tensor.value];
          has_copy[away.tensor.value] = true;
        }
    }
  return clean;
}

TEST(CopiesProperty, ArePlannedAsTheyAreFound) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>());
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    Copies copies(trace, lifetimes);
    std::vector<std::size_t> planned;
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
        is_clean[period] = copies.is_clean(period);
      }
    };
    note();
    for (const std::size_t period : planned) {
      const auto cheaper = copies.plan(period);
      is_planned[period] = true;
      for (std::size_t other = 0; other < lifetimes.periods.size(); ++other) {
        const bool changed =
            copies.is_clean(other) != is_clean[other] || copies.is_written_anyway(other) != written_anyway[other];
        if (changed && !is_planned[other]) RC_ASSERT(std::ranges::count(cheaper, other) == 1);
      }
      note();
    }
    const std::vector<bool> clean = clean_in_fact(trace, lifetimes, copies, planned);
    for (const std::size_t period : planned) RC_ASSERT(clean[period] == copies.is_clean(period));
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

}  // namespace
}  // namespace spillway
