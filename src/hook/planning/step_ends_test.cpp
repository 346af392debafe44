#include "hook/planning/step_ends.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

// The N-th step ends at N squared, and has waited a tenth of that.
void add(StepEnds& ends, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t step = first; step <= last; ++step) ends.add(Nanos{100 * step * step}, Nanos{10 * step * step});
}

TEST(StepEnds, AnIterationEndsBeforeTheLatestStep) {
  StepEnds ends;
  add(ends, 1, 6);
  const auto iteration = ends.iteration(2);  // Steps 4 and 5.
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->duration, Nanos{100 * (25 - 9)});
  EXPECT_EQ(iteration->waited, Nanos{10 * (25 - 9)});
  EXPECT_TRUE(ends.iteration(4));
  EXPECT_FALSE(ends.iteration(5)) << "when it began nobody knows";
  EXPECT_FALSE(StepEnds().iteration(1));
}

TEST(StepEnds, KnowsTheLongestIterationInALongRun) {
  StepEnds ends;
  add(ends, 1, 1'000);
  const std::uint64_t longest = Recorder::kMostPeriods;
  const auto iteration = ends.iteration(longest);
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->waited, Nanos{10 * (999 * 999 - (999 - longest) * (999 - longest))});
  EXPECT_FALSE(ends.iteration(longest + 1)) << "memory is bounded";
}

TEST(StepEnds, NoIterationIsPartlyDoneInAnotherWay) {
  StepEnds ends;
  add(ends, 1, 6);
  ends.begin_anew();
  add(ends, 7, 8);
  EXPECT_TRUE(ends.iteration(1)) << "the seventh step";
  EXPECT_FALSE(ends.iteration(2));
  add(ends, 9, 9);
  EXPECT_TRUE(ends.iteration(2));
  ends = StepEnds();
  ends.begin_anew();
  EXPECT_FALSE(ends.iteration(0));
}

}  // namespace
}  // namespace spillway
