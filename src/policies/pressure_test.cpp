#include "policies/pressure.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace spillway {
namespace {

TEST(PressureProperty, AgreesWithPlainArraysUnderAnyUpdates) {
  EXPECT_TRUE(rc::check([] {
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 40);
    auto values = *rc::gen::container<std::vector<std::int64_t>>(count, rc::gen::inRange<std::int64_t>(-50, 50));
    const auto weights = *rc::gen::container<std::vector<std::uint64_t>>(count, rc::gen::inRange<std::uint64_t>(0, 9));
    Pressure pressure(values, weights);
    for (int step = 0; step < 20; ++step) {
      const auto begin = *rc::gen::inRange<std::uint32_t>(0, count + 1);
      const auto end = *rc::gen::inRange<std::uint32_t>(begin, count + 1);
      const auto amount = *rc::gen::inRange<std::int64_t>(-30, 30);
      pressure.add(begin, end, amount);
      for (std::uint32_t at = begin; at < end; ++at) values[at] += amount;

      const auto from = *rc::gen::inRange<std::uint32_t>(0, count);
      const auto to = *rc::gen::inRange<std::uint32_t>(from + 1, count + 1);
      const auto size = *rc::gen::inRange<std::int64_t>(1, 60);
      RC_ASSERT(pressure.max(from, to) == *std::max_element(values.begin() + from, values.begin() + to));
      Pressure::Wide benefit = 0;
      for (std::uint32_t at = from; at < to; ++at)
        benefit += static_cast<Pressure::Wide>(std::clamp<std::int64_t>(values[at], 0, size)) * weights[at];
      std::uint64_t steps = 0;
      const Pressure::Wide found = pressure.benefit(from, to, size, steps);
      RC_ASSERT(static_cast<std::int64_t>(found) == static_cast<std::int64_t>(benefit));
      std::uint32_t run = to;
      while (run > from && values[run - 1] <= amount) --run;
      RC_ASSERT(pressure.run_before(from, to, amount) == run);
    }
  }));
}

// Every second kernel is 10 over the capacity, the others 6 under it.
TEST(Pressure, ALookEndsHoweverOftenTheCapacityIsCrossed) {
  constexpr std::uint32_t kKernels = 1 << 16;
  std::vector<std::int64_t> values;
  for (std::uint32_t kernel = 0; kernel < kKernels; ++kernel) values.push_back(kernel % 2 == 0 ? 10 : -6);
  const Pressure pressure(values, std::vector<std::uint64_t>(kKernels, 3));
  std::uint64_t steps = 0;
  const auto found = static_cast<std::int64_t>(pressure.benefit(1, kKernels, 8, steps));
  EXPECT_LE(steps, Pressure::kMostSteps + 64);
  constexpr std::int64_t kExact = 3 * 8 * kKernels / 2, kByMeans = 3 * 2 * kKernels;
  EXPECT_GE(found, kByMeans - 100);
  EXPECT_LE(found, kExact);
}

}  // namespace
}  // namespace spillway
