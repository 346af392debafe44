#include "hook/planning/plan_trial.h"

#include <gtest/gtest.h>

#include <vector>

#include "hook/recorder/recorder_script.h"

namespace spillway {
namespace {

using Verdict = PlanTrial::Verdict;

constexpr Recorder::Progress kKnownAgain{
    .iteration = 1, .repetitions = 1, .steps_each = 1, .steps_done = 0, .average = {}};

struct Training {
  PlanTrial trial;
  Nanos at, waited;

  Training() { step(0); }
  // Of a second, unless told.
  Verdict step(std::uint64_t waited_millis, const Recorder::Progress& progress = kKnownAgain,
               std::uint64_t millis = 1'000) {
    at += Nanos{1'000'000} * millis;
    waited += Nanos{1'000'000} * waited_millis;
    return trial.step_ended(progress, at, waited);
  }
  // The last verdict, after none before.
  Verdict steps(const std::vector<std::uint64_t>& waited_millis, const Recorder::Progress& progress = kKnownAgain) {
    Verdict last{};
    for (std::size_t i = 0; i < waited_millis.size(); ++i) {
      EXPECT_EQ(last, Verdict::go_on) << i;
      last = step(waited_millis[i], progress);
    }
    return last;
  }
};
Training planned_after(const std::vector<std::uint64_t>& waited_millis) {
  Training run;
  EXPECT_EQ(run.steps(waited_millis), Verdict::go_on);
  run.trial.plan_begins(false);
  return run;
}

TEST(PlanTrial, APlanThatWaitsLessIsFollowedForGood) {
  Training run = planned_after({500, 450});
  EXPECT_EQ(run.steps({600, 100, 120, 110, 900, 100, 900, 900, 900, 900, 900, 900, 900}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
}

TEST(PlanTrial, APlanThatWaitsLongerIsGivenUp) {
  Training run = planned_after({300, 200});
  EXPECT_EQ(run.steps({0, 400, 100, 320, 330, 340}), Verdict::give_up);
  EXPECT_TRUE(run.trial.in_doubt());
  EXPECT_EQ(run.steps({900, 250, 260, 270, 250, 900, 250, 250}), Verdict::go_on);
  EXPECT_TRUE(run.trial.gave_up());
}

TEST(PlanTrial, ALittleLongerIsAsGood) {
  Training run = planned_after({300, 200});
  EXPECT_EQ(run.steps({900, 400, 240, 230, 240, 330, 330, 330}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
}

TEST(PlanTrial, WhatIsALittleDependsOnMostIterationsNotOnALongOne) {
  Training run = planned_after({300, 200});
  EXPECT_EQ(run.steps({900, 400, 400, 400, 400}), Verdict::go_on);
  EXPECT_EQ(run.step(400, kKnownAgain, 60'000), Verdict::give_up);
}

TEST(PlanTrial, WhatIsNoBetterWithoutThePlanTakesItUpAgain) {
  Training run = planned_after({300, 200});
  EXPECT_EQ(run.steps({600, 400, 350, 320, 330, 340}), Verdict::give_up);
  EXPECT_EQ(run.steps({0, 500, 400, 600, 100, 400}), Verdict::take_up_again);
  EXPECT_FALSE(run.trial.gave_up());
  EXPECT_EQ(run.steps({900, 900, 900, 900, 900, 900, 900, 900}), Verdict::go_on);
}

TEST(PlanTrial, WhatIsHardlyBetterWithoutThePlanTakesItUpAgain) {
  for (const std::uint64_t without : {300u, 280u}) {
    Training run = planned_after({300, 200});
    EXPECT_EQ(run.steps({600, 340, 340, 340, 340, 340}), Verdict::give_up);
    const auto verdict = run.steps({0, without, without, without, without, without});
    EXPECT_EQ(verdict, without == 300 ? Verdict::take_up_again : Verdict::go_on);
  }
}

TEST(PlanTrial, APlanIsFollowedWhereNothingWasLearnedBefore) {
  Training run = planned_after({});
  EXPECT_EQ(run.steps({600, 500, 500, 500, 500, 500, 500, 500}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
}

TEST(PlanTrial, APlanThatTakesAnothersPlaceIsJudgedByItsOwn) {
  Training run = planned_after({300, 200});
  EXPECT_EQ(run.steps({900, 900, 900, 900, 900}), Verdict::go_on);
  run.trial.plan_begins(false);
  EXPECT_EQ(run.steps({900, 100, 100, 900, 100, 100, 900}), Verdict::go_on);
  EXPECT_FALSE(run.trial.gave_up());
  run.trial.plan_begins(false);
  EXPECT_EQ(run.steps({900, 900, 900, 900, 900, 900, 900}), Verdict::go_on) << "it has passed";
}

TEST(PlanTrial, NoOtherPlanBeginsWhileOneIsInDoubtOrAfterItWasGivenUp) {
  Training run = planned_after({300, 200});
  EXPECT_FALSE(run.trial.in_doubt());
  EXPECT_EQ(run.steps({0, 400, 350, 320, 330, 340}), Verdict::give_up);
  EXPECT_TRUE(run.trial.in_doubt());
  EXPECT_DEATH(run.trial.plan_begins(false), "");
  EXPECT_EQ(run.steps({0, 200, 200, 200, 200, 200}), Verdict::go_on);
  EXPECT_FALSE(run.trial.in_doubt());
  EXPECT_TRUE(run.trial.gave_up());
  EXPECT_DEATH(run.trial.plan_begins(false), "");
  run.trial.plan_begins(true);
  EXPECT_FALSE(run.trial.gave_up()) << "what the user gives is followed";
}

TEST(PlanTrial, AGivenPlanIsNotOnTrial) {
  Training run;
  EXPECT_EQ(run.steps({300, 200}), Verdict::go_on);
  run.trial.plan_begins(true);
  EXPECT_EQ(run.steps({900, 900, 900, 900, 900, 900, 900, 900}), Verdict::go_on);
}

TEST(PlanTrial, BeginsAnewWithAnotherIteration) {
  constexpr Recorder::Progress kOther{
      .iteration = 2, .repetitions = 1, .steps_each = 1, .steps_done = 0, .average = {}};
  for (const bool given : {false, true}) {
    Training run;
    EXPECT_EQ(run.steps({300, 200}), Verdict::go_on);
    run.trial.plan_begins(given);
    EXPECT_EQ(run.steps({900, 400, 350, 320, 330, 340}), given ? Verdict::go_on : Verdict::give_up);
    EXPECT_EQ(run.steps({700, 700, 900}, kOther), Verdict::go_on);
    EXPECT_FALSE(run.trial.gave_up());
    EXPECT_FALSE(run.trial.in_doubt());
    run.trial.plan_begins(false);
    EXPECT_EQ(run.steps({900, 740, 740, 740, 740, 740}, kOther), Verdict::go_on);
    run.trial.none_is_followed();
    EXPECT_EQ(run.steps({900, 680, 680}, kOther), Verdict::go_on);
    run.trial.plan_begins(false);
    EXPECT_EQ(run.steps({900, 740, 740, 740, 740, 740}, kOther), Verdict::give_up) << "what was before is forgotten";
  }
}

// Of two steps, and before each another one that waits for long.
TEST(PlanTrial, JudgesWholeIterationsThatTheRecorderKnowsAgain) {
  Script script;
  script.data("a");
  script.data("b");
  Training run;
  const auto step = [&](const char* net, std::uint64_t waited_millis, std::uint64_t batch = 64) {
    train(script, net, batch);
    return run.step(waited_millis, script.recorder.progress());
  };
  for (int round = 0; round < 5; ++round) {
    step("a", 0);
    step("b", 200);
  }
  ASSERT_EQ(script.recorder.progress().steps_each, 2u);
  run.trial.plan_begins(false);
  int rounds = 0;
  for (Verdict last{}; last == Verdict::go_on && rounds < 20; ++rounds) {
    EXPECT_EQ(step("a", 5'000, 128 + rounds), Verdict::go_on);
    EXPECT_EQ(step("b", 310), Verdict::go_on);
    last = step("a", 0);
  }
  EXPECT_EQ(rounds, 6) << "five, and one to get under way";
  EXPECT_TRUE(run.trial.in_doubt());
}

}  // namespace
}  // namespace spillway
