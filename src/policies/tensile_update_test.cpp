#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policies/tensile.h"
#include "trace/noise.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

Trace of_times(const std::vector<std::uint64_t>& times) {
  Trace trace{.name = "times", .source = "a test"};
  for (const std::uint64_t time : times) trace.kernels.push_back({.name = "k", .duration = Nanos{time}});
  return trace;
}

TEST(TensileUpdate, TheFirstMeasuredIterationReplacesWhatWasPredicted) {
  const Reckoned predicted = reckoned_from(of_times({100, 900}), true);
  EXPECT_EQ(reckon_again(predicted, of_times({900, 100})), reckoned_from(of_times({900, 100})));
  EXPECT_EQ(reckon_again(predicted, of_times({100, 900})), reckoned_from(of_times({100, 900})))
      << "though it was right";
}

TEST(TensileUpdate, ThenItIsTheSumThatCounts) {
  const Reckoned measured = reckoned_from(of_times({400, 600}));
  EXPECT_EQ(reckon_again(measured, of_times({600, 400})), std::nullopt);
  EXPECT_EQ(reckon_again(measured, of_times({700, 600})), std::nullopt) << "30 %";
  EXPECT_EQ(reckon_again(measured, of_times({100, 600})), std::nullopt);
  EXPECT_EQ(reckon_again(measured, of_times({800, 600})), reckoned_from(of_times({760, 600})))
      << "0.9 of the new, 0.1 of the old";
  EXPECT_EQ(reckon_again(measured, of_times({0, 600})), reckoned_from(of_times({40, 600})));
}

TEST(TensileUpdate, GoesOnUntilItIsNear) {
  EXPECT_TRUE(rc::check([] {
    const auto before = *rc::gen::inRange<std::uint64_t>(1000, 1'000'000'000);
    const auto after = *rc::gen::inRange<std::uint64_t>(1000, 1'000'000'000);
    Reckoned reckoned = reckoned_from(of_times({before}));
    int updates = 0;
    while (const auto again = reckon_again(reckoned, of_times({after}))) {
      reckoned = *again;
      RC_ASSERT(++updates < 20);
    }
    const double apart = static_cast<double>(after) - static_cast<double>(reckoned.durations[0].value);
    RC_ASSERT(std::abs(apart) <= 0.3 * static_cast<double>(reckoned.durations[0].value));
  }));
}

TEST(TensileUpdate, NoiseBelowItsThresholdChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>());
    const Noise noise{.percent = *rc::gen::inRange<std::uint64_t>(0, 30), .seed = *rc::gen::arbitrary<std::uint64_t>()};
    RC_ASSERT(!reckon_again(reckoned_from(trace), with_noise(trace, noise)));
  }));
}

}  // namespace
}  // namespace spillway
