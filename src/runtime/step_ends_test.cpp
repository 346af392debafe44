#include "runtime/step_ends.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

// The N-th step ends at N squared, and has waited a tenth of that.
void add(StepEnds& ends, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t step = first; step <= last; ++step) ends.add(Nanos{100 * step * step}, Nanos{10 * step * step});
}

TEST(StepEnds, AnIterationIsOfTheLatestSteps) {
  StepEnds ends;
  add(ends, 1, 6);
  const auto iteration = ends.iteration(2);  // Steps 5 and 6.
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->duration, Nanos{100 * (36 - 16)});
  EXPECT_EQ(iteration->waited, Nanos{10 * (36 - 16)});
  EXPECT_TRUE(ends.iteration(5));
  EXPECT_FALSE(ends.iteration(6)) << "when it began nobody knows";
  EXPECT_FALSE(StepEnds().iteration(0));
}

TEST(StepEnds, KnowsTheLongestIterationInALongRun) {
  StepEnds ends;
  add(ends, 1, 1'000);
  const std::uint64_t longest = Recorder::kMostPeriods;
  const auto iteration = ends.iteration(longest);
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->waited, Nanos{10 * (1'000 * 1'000 - (1'000 - longest) * (1'000 - longest))});
  EXPECT_FALSE(ends.iteration(longest + 1)) << "memory is bounded";
}

TEST(StepEnds, NoIterationIsPartlyDoneInAnotherWay) {
  StepEnds ends;
  add(ends, 1, 6);
  ends.begin_anew();
  EXPECT_FALSE(ends.iteration(1));
  add(ends, 7, 7);
  EXPECT_TRUE(ends.iteration(1)) << "the seventh step";
  EXPECT_FALSE(ends.iteration(2));
  ends = StepEnds();
  ends.begin_anew();
  EXPECT_FALSE(ends.iteration(0));
}

}  // namespace
}  // namespace spillway
