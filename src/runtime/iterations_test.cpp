#include "runtime/iterations.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway {
namespace {

// A script that ends a step each second, in each of which a MiB comes.
struct IterationsTest : testing::Test {
  void step(const std::vector<Updated>& written) {
    next();
    count(iterations.step_ended(now, memory, written));
  }
  void backward() {
    next();
    count(iterations.backward_ended(now, memory));
  }
  void count(const CountedIteration& one) {
    if (one.ended.place == IterationEnded::Place::first) counted.clear();
    if (one.ended.place == IterationEnded::Place::last) counted.pop_back();
    EXPECT_EQ(one.ended.at, now);
    counted.push_back(one);
  }
  void next() {
    iterations.training_starts(now, memory);
    now += Nanos{1'000'000'000};
    memory.moved(Tier::ssd, Tier::device) += 1_MiB;
  }
  struct Seen {
    std::uint64_t seconds, mib_in;
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  std::vector<Seen> seen() const {
    std::vector<Seen> all;
    for (const CountedIteration& one : counted)
      all.push_back({one.figures.duration.value / 1'000'000'000, one.figures.in.value >> 20});
    return all;
  }

  Iterations iterations;
  std::vector<CountedIteration> counted;
  Nanos now{5};
  MemoryFigures memory;
};

const std::vector<Updated> kFirst{{{1}, {}}, {{2}, {}}}, kSecond{{{3}, {}}},
    kThird{{{3}, {64}}, {{9}, {}}};  // The last two have parts of one storage.

TEST_F(IterationsTest, EachStepOfOneOptimizerIsOne) {
  for (int i = 0; i < 3; ++i) step(kFirst);
  EXPECT_EQ(seen(), (std::vector<Seen>{{1, 1}, {1, 1}, {1, 1}}));
}

TEST_F(IterationsTest, StepsOfSeveralOptimizersInTurnsAreTogetherOne) {
  for (int i = 0; i < 2; ++i)
    for (const auto& optimizer : {kFirst, kSecond, kThird}) step(optimizer);
  EXPECT_EQ(seen(), (std::vector<Seen>{{3, 3}, {3, 3}}));
}

TEST_F(IterationsTest, OneThatStepsMoreOftenBeginsAnotherEachTime) {
  for (const auto& optimizer : {kFirst, kFirst, kSecond, kFirst, kFirst, kSecond}) step(optimizer);
  EXPECT_EQ(seen(), (std::vector<Seen>{{1, 1}, {2, 2}, {1, 1}, {2, 2}}));
}

TEST_F(IterationsTest, OneUnderWayCountsTheStepsThatItHasMade) {
  for (const auto& optimizer : {kFirst, kSecond, kFirst}) step(optimizer);
  EXPECT_EQ(seen(), (std::vector<Seen>{{2, 2}, {1, 1}}));
}

TEST_F(IterationsTest, BackwardPassesWereNoneOnceThereIsAnOptimizer) {
  backward();
  backward();
  EXPECT_EQ(seen(), (std::vector<Seen>{{1, 1}, {1, 1}}));
  step(kFirst);
  step(kFirst);
  EXPECT_EQ(seen(), (std::vector<Seen>{{3, 3}, {1, 1}}));
}

TEST_F(IterationsTest, OneIsPlannedThatHasMostOfThePlanOrLittleElse) {
  struct Case {
    int all, planned;
    bool expected;
  };
  const auto check = [&](std::uint64_t kernels, std::uint64_t steps, const std::vector<Case>& cases) {
    iterations.training_starts(now, memory);
    iterations.follows(kernels, steps);
    for (const auto& [all, planned, expected] : cases) {
      for (int kernel = 0; kernel < all; ++kernel) iterations.kernel_ended(kernel < planned);
      step(kFirst);
      EXPECT_EQ(counted.back().figures.planned != 0, expected) << all << " " << planned;
      EXPECT_EQ(counted.back().figures.kernels, static_cast<std::uint64_t>(all));
      EXPECT_EQ(counted.back().figures.planned_kernels, static_cast<std::uint64_t>(planned));
    }
  };
  check(0, 0, {{10, 0, false}, {0, 0, false}});
  check(10, 1,
        {{10, 10, true}, {10, 6, true}, {90, 10, true}, {90, 6, true}, {90, 5, false}, {8, 5, true}, {8, 3, false}});
  check(20, 2, {{90, 6, true}, {90, 5, false}, {4, 3, true}});  // Steps of one iteration may differ.
}

}  // namespace
}  // namespace spillway
