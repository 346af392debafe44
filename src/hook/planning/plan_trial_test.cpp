#include "hook/planning/plan_trial.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway {
namespace {

using Verdict = PlanTrial::Verdict;

// Iterations of a second each.
struct Trial {
  PlanTrial trial;
  std::uint64_t number = 0;

  // The last verdict, after none before.
  Verdict iterations(const std::vector<std::uint64_t>& waited_millis) {
    Verdict last{};
    for (std::size_t at = 0; at < waited_millis.size(); ++at) {
      last = trial.ended({++number, Nanos{1'000'000'000}, Nanos{waited_millis[at] * 1'000'000}});
      if (at + 1 < waited_millis.size()) {
        EXPECT_EQ(last, Verdict::go_on) << at;
      }
    }
    return last;
  }
  void plan_after(const std::vector<std::uint64_t>& waited_millis) {
    EXPECT_EQ(iterations(waited_millis), Verdict::go_on);
    trial.plan_begins();
  }
};

TEST(PlanTrial, APlanThatWaitsLessIsFollowedForGood) {
  Trial run;
  run.plan_after({900, 500, 450});
  EXPECT_EQ(run.iterations({600, 100, 120, 110, 900, 100, 900, 900, 900, 900, 900, 900, 900}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
}

TEST(PlanTrial, APlanThatWaitsLongerIsGivenUp) {
  Trial run;
  run.plan_after({900, 300, 200});
  EXPECT_EQ(run.iterations({900, 400, 100, 320, 330, 100, 340}), Verdict::give_up);
  EXPECT_TRUE(run.trial.gave_up());
  EXPECT_EQ(run.iterations({900, 250, 260, 270, 250, 900, 250, 250}), Verdict::go_on);
  EXPECT_TRUE(run.trial.gave_up());
}

TEST(PlanTrial, WaitsOfTheFirstIterationsCountForNothing) {
  Trial run;
  run.plan_after({900, 200});
  EXPECT_EQ(run.iterations({0, 400, 0, 320, 330, 0, 340}), Verdict::give_up);
}

TEST(PlanTrial, ALittleLongerIsAsGood) {
  Trial run;
  run.plan_after({900, 300, 200});
  EXPECT_EQ(run.iterations({900, 400, 240, 230, 240, 330, 330, 330}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
}

TEST(PlanTrial, WhatIsNoBetterWithoutThePlanTakesItUpAgain) {
  Trial run;
  run.plan_after({900, 300, 200});
  EXPECT_EQ(run.iterations({600, 400, 350, 320, 330, 340, 330}), Verdict::give_up);
  EXPECT_EQ(run.iterations({100, 500, 400, 600, 100, 400, 0}), Verdict::take_up_again);
  EXPECT_FALSE(run.trial.gave_up());
  EXPECT_EQ(run.iterations({900, 900, 900, 900, 900, 900, 900, 900}), Verdict::go_on);
}

TEST(PlanTrial, APlanIsFollowedWhereNothingWasLearnedBefore) {
  Trial run;
  run.plan_after({900});
  EXPECT_EQ(run.iterations({600, 500, 500, 500, 500, 500, 500, 500}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
}

TEST(PlanTrial, AnIterationThatGoesOnCountsAsAWhole) {
  Trial run;
  EXPECT_EQ(run.iterations({900, 10}), Verdict::go_on);
  run.trial.ended({2, Nanos{2'000'000'000}, Nanos{700'000'000}});
  run.trial.plan_begins();
  EXPECT_EQ(run.iterations({600, 600, 600, 600, 600, 600, 600, 600}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
}

TEST(PlanTrial, BeginsAnewWithAnotherIteration) {
  Trial run;
  run.plan_after({900, 300, 200});
  EXPECT_EQ(run.iterations({900, 400, 350, 320, 330, 340, 330}), Verdict::give_up);
  run.trial.begin_anew();
  EXPECT_FALSE(run.trial.gave_up());
  run.plan_after({900, 900, 900});
  EXPECT_EQ(run.iterations({900, 400, 350, 320, 330, 330, 330, 330}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
}

}  // namespace
}  // namespace spillway
