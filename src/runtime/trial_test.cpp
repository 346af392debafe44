#include "runtime/trial.h"

#include <gtest/gtest.h>

#include <vector>

#include "recorder/recorder_script.h"

namespace spillway {
namespace {

constexpr Recorder::Progress kKnownAgain{
    .iteration = 1, .repetitions = 1, .steps_each = 1, .steps_done = 0, .average = {}};

struct Training {
  Trial trial;
  Nanos at, waited;

  Training() { step(0); }
  // Of a second, unless told. Whether the plan is given up by it.
  bool step(std::uint64_t waited_millis, const Recorder::Progress& progress = kKnownAgain,
            std::uint64_t millis = 1'000) {
    at += Nanos{1'000'000} * millis;
    waited += Nanos{1'000'000} * waited_millis;
    return trial.step_ended(progress, at, waited);
  }
  // Whether it is given up by the last one; none before does so.
  bool steps(const std::vector<std::uint64_t>& waited_millis, const Recorder::Progress& progress = kKnownAgain) {
    bool gives_up = false;
    for (std::size_t i = 0; i < waited_millis.size(); ++i) {
      EXPECT_FALSE(gives_up) << i;
      gives_up = step(waited_millis[i], progress);
    }
    return gives_up;
  }
};
Training planned_after(const std::vector<std::uint64_t>& waited_millis) {
  Training run;
  EXPECT_FALSE(run.steps(waited_millis));
  run.trial.plan_begins(false);
  return run;
}

TEST(Trial, APlanThatWaitsLessIsFollowedForGood) {
  Training run = planned_after({500, 450});
  EXPECT_FALSE(run.steps({600, 100, 120, 110, 900, 100, 900, 900, 900, 900, 900, 900, 900}));
  EXPECT_FALSE(run.trial.is_dropped());
}

TEST(Trial, APlanThatWaitsLongerIsGivenUp) {
  Training run = planned_after({300, 200});
  EXPECT_TRUE(run.steps({0, 400, 100, 320, 330, 340}));
  EXPECT_TRUE(run.trial.is_dropped());
  EXPECT_FALSE(run.steps({900, 900, 900, 900, 900, 900, 900}));
  EXPECT_DEATH(run.trial.plan_begins(false), "");
  run.trial.plan_begins(true);
  EXPECT_FALSE(run.trial.is_dropped()) << "what the user gives is followed";
}

TEST(Trial, ALittleLongerIsAsGood) {
  Training run = planned_after({300, 200});
  EXPECT_FALSE(run.steps({900, 400, 240, 230, 240, 330, 330, 330}));
  EXPECT_FALSE(run.trial.is_dropped());
}

TEST(Trial, WhatIsALittleDependsOnMostIterationsNotOnALongOne) {
  Training run = planned_after({300, 200});
  EXPECT_FALSE(run.steps({900, 400, 400, 400, 400}));
  EXPECT_TRUE(run.step(400, kKnownAgain, 60'000));
}

TEST(Trial, APlanIsFollowedWhereNothingWasLearnedBefore) {
  Training run = planned_after({});
  EXPECT_FALSE(run.steps({600, 500, 500, 500, 500, 500, 500, 500}));
  EXPECT_FALSE(run.trial.is_dropped());
}

TEST(Trial, APlanThatTakesAnothersPlaceIsJudgedByItsOwn) {
  Training run = planned_after({300, 200});
  EXPECT_FALSE(run.steps({900, 900, 900, 900, 900}));
  run.trial.plan_begins(false);
  EXPECT_FALSE(run.steps({900, 100, 100, 900, 100, 100, 900}));
  EXPECT_FALSE(run.trial.is_dropped());
  run.trial.plan_begins(false);
  EXPECT_FALSE(run.steps({900, 900, 900, 900, 900, 900, 900})) << "it has passed";
}

TEST(Trial, AGivenPlanIsNotOnTrial) {
  Training run;
  EXPECT_FALSE(run.steps({300, 200}));
  run.trial.plan_begins(true);
  EXPECT_FALSE(run.steps({900, 900, 900, 900, 900, 900, 900, 900}));
}

TEST(Trial, BeginsAnewWithAnotherIteration) {
  constexpr Recorder::Progress kOther{
      .iteration = 2, .repetitions = 1, .steps_each = 1, .steps_done = 0, .average = {}};
  for (const bool given : {false, true}) {
    Training run;
    EXPECT_FALSE(run.steps({300, 200}));
    run.trial.plan_begins(given);
    EXPECT_EQ(run.steps({900, 400, 350, 320, 330, 340}), !given);
    EXPECT_FALSE(run.steps({700, 700, 900}, kOther));
    EXPECT_FALSE(run.trial.is_dropped());
    run.trial.plan_begins(false);
    EXPECT_FALSE(run.steps({900, 740, 740, 740, 740, 740}, kOther));
    run.trial.none_is_followed();
    EXPECT_FALSE(run.steps({900, 680, 680}, kOther));
    run.trial.plan_begins(false);
    EXPECT_TRUE(run.steps({900, 740, 740, 740, 740, 740}, kOther)) << "what was before is forgotten";
  }
}

// Of two steps, and before each another one that waits for long.
TEST(Trial, JudgesWholeIterationsThatTheRecorderKnowsAgain) {
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
  for (bool gives_up = false; !gives_up && rounds < 20; ++rounds) {
    EXPECT_FALSE(step("a", 5'000, 128 + rounds));
    EXPECT_FALSE(step("b", 310));
    gives_up = step("a", 0);
  }
  EXPECT_EQ(rounds, 6) << "five, and one to get under way";
  EXPECT_TRUE(run.trial.is_dropped());
}

}  // namespace
}  // namespace spillway
