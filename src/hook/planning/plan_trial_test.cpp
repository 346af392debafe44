#include "hook/planning/plan_trial.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway {
namespace {

using Verdict = PlanTrial::Verdict;

// Iterations of a second each. The last verdict, after none before.
Verdict run(PlanTrial& trial, const std::vector<std::uint64_t>& waited_millis) {
  Verdict last{};
  for (std::size_t at = 0; at < waited_millis.size(); ++at) {
    EXPECT_EQ(last, Verdict::go_on) << at;
    last = trial.ended({Nanos{1'000'000'000}, Nanos{waited_millis[at] * 1'000'000}});
  }
  return last;
}
PlanTrial planned_after(const std::vector<std::uint64_t>& waited_millis) {
  PlanTrial trial;
  EXPECT_EQ(run(trial, waited_millis), Verdict::go_on);
  trial.plan_begins();
  return trial;
}

TEST(PlanTrial, APlanThatWaitsLessIsFollowedForGood) {
  PlanTrial trial = planned_after({500, 450});
  EXPECT_EQ(run(trial, {600, 100, 120, 110, 900, 100, 900, 900, 900, 900, 900, 900, 900}), Verdict::go_on);
  EXPECT_FALSE(trial.gave_up());
}

TEST(PlanTrial, APlanThatWaitsLongerIsGivenUp) {
  PlanTrial trial = planned_after({300, 200});
  EXPECT_EQ(run(trial, {0, 400, 100, 320, 330, 340}), Verdict::give_up);
  EXPECT_TRUE(trial.gave_up());
  EXPECT_EQ(run(trial, {900, 250, 260, 270, 250, 900, 250, 250}), Verdict::go_on);
  EXPECT_TRUE(trial.gave_up());
}

TEST(PlanTrial, ALittleLongerIsAsGood) {
  PlanTrial trial = planned_after({300, 200});
  EXPECT_EQ(run(trial, {900, 400, 240, 230, 240, 330, 330, 330}), Verdict::go_on);
  EXPECT_FALSE(trial.gave_up());
}

TEST(PlanTrial, WhatIsALittleDependsOnMostIterationsNotOnALongOne) {
  PlanTrial trial = planned_after({300, 200});
  EXPECT_EQ(run(trial, {900, 400, 400, 400, 400}), Verdict::go_on);
  EXPECT_EQ(trial.ended({Nanos{60'000'000'000}, Nanos{400'000'000}}), Verdict::give_up);
}

TEST(PlanTrial, WhatIsNoBetterWithoutThePlanTakesItUpAgain) {
  PlanTrial trial = planned_after({300, 200});
  EXPECT_EQ(run(trial, {600, 400, 350, 320, 330, 340}), Verdict::give_up);
  EXPECT_EQ(run(trial, {0, 500, 400, 600, 100, 400}), Verdict::take_up_again);
  EXPECT_FALSE(trial.gave_up());
  EXPECT_EQ(run(trial, {900, 900, 900, 900, 900, 900, 900, 900}), Verdict::go_on);
}

TEST(PlanTrial, WhatIsHardlyBetterWithoutThePlanTakesItUpAgain) {
  for (const std::uint64_t without : {300u, 280u}) {
    PlanTrial trial = planned_after({300, 200});
    EXPECT_EQ(run(trial, {600, 340, 340, 340, 340, 340}), Verdict::give_up);
    const auto verdict = run(trial, {0, without, without, without, without, without});
    EXPECT_EQ(verdict, without == 300 ? Verdict::take_up_again : Verdict::go_on);
  }
}

TEST(PlanTrial, APlanIsFollowedWhereNothingWasLearnedBefore) {
  PlanTrial trial = planned_after({});
  EXPECT_EQ(run(trial, {600, 500, 500, 500, 500, 500, 500, 500}), Verdict::go_on);
  EXPECT_FALSE(trial.gave_up());
}

TEST(PlanTrial, APlanThatTakesAnothersPlaceIsJudgedByItsOwn) {
  PlanTrial trial = planned_after({300, 200});
  EXPECT_EQ(run(trial, {900, 900, 900, 900, 900}), Verdict::go_on);
  trial.plan_begins();
  EXPECT_EQ(run(trial, {900, 100, 100, 900, 100, 100, 900}), Verdict::go_on);
  EXPECT_FALSE(trial.gave_up());
  trial.plan_begins();
  EXPECT_EQ(run(trial, {900, 900, 900, 900, 900, 900, 900}), Verdict::go_on) << "it has passed";
}

TEST(PlanTrial, BeginsAnewWithAnotherIteration) {
  PlanTrial trial = planned_after({300, 200});
  EXPECT_EQ(run(trial, {900, 400, 350, 320, 330, 340}), Verdict::give_up);
  trial.begin_anew();
  EXPECT_FALSE(trial.gave_up());
  EXPECT_EQ(run(trial, {900, 900, 900}), Verdict::go_on);
  trial.plan_begins();
  EXPECT_EQ(run(trial, {900, 400, 350, 320, 330, 330, 330}), Verdict::go_on);
  EXPECT_FALSE(trial.gave_up());
}

}  // namespace
}  // namespace spillway
