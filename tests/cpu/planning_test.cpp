#include "runtime/planning.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

#include "pager_support.h"
#include "plan/machine_file.h"
#include "recorder/recorder_script.h"

namespace spillway {
namespace {

// An iteration that fits, so that paging is as good as any plan.
class PlanningTest : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_PAGE_FAULTS();
    pager_ = started(small_config(EvictionMethod::automatic));
    planning_ = std::make_unique<Planning>(*pager_, *load_machine("a100"), *run_policy(kAuto), std::nullopt);
    script_.data("w");
    train_steps(script_, 6);
  }
  Recorder::Progress progress() const { return script_.recorder.progress(); }
  // What comes of it; nothing before that is wanted.
  Planning::Outcome planned() {
    planning_->submit(*script_.recorder.iteration(), progress(), Bytes{}, [](StorageId) { return std::nullopt; });
    EXPECT_FALSE(planning_->wants(progress(), true));
    return taken();
  }
  Planning::Outcome taken() {
    for (;; std::this_thread::yield())
      if (auto outcome = planning_->take(progress())) return *outcome;
  }
  void decide_for_none() {
    const Planning::Outcome outcome = planned();
    EXPECT_EQ(outcome.error, "");
    EXPECT_TRUE(outcome.none_needed);
  }

  std::unique_ptr<Pager> pager_;
  std::unique_ptr<Planning> planning_;
  Script script_;
};

TEST_F(PlanningTest, NothingIsWantedBeforeThereIsAnIterationAndBeforeAnythingMoved) {
  EXPECT_FALSE(planning_->wants({}, true));
  EXPECT_FALSE(planning_->wants(progress(), false));
  EXPECT_TRUE(planning_->wants(progress(), true));
}

TEST_F(PlanningTest, WhatIsDecidedStandsUntilTimesHaveChangedForTwoIterationsAndThenForFour) {
  decide_for_none();
  EXPECT_TRUE(planning_->needs_none(progress()));
  train_steps(script_, 3);
  EXPECT_FALSE(planning_->wants(progress(), true));
  script_.slower(100);
  train_steps(script_, 1);
  EXPECT_FALSE(planning_->wants(progress(), false));
  EXPECT_TRUE(planning_->wants(progress(), true));
  decide_for_none();
  script_.slower(1000);
  train_steps(script_, 3);
  EXPECT_FALSE(planning_->wants(progress(), true));
  train_steps(script_, 1);
  EXPECT_TRUE(planning_->wants(progress(), true));
}

TEST_F(PlanningTest, WhatTheScriptDoesNotDoAnyMoreIsNotDecided) {
  planning_->submit(*script_.recorder.iteration(), progress(), Bytes{}, [](StorageId) { return std::nullopt; });
  train_steps(script_, 20, 128);
  const Planning::Outcome outcome = taken();
  EXPECT_EQ(outcome.plan, nullptr);
  EXPECT_FALSE(outcome.none_needed);
  EXPECT_FALSE(planning_->needs_none(progress()));
  EXPECT_TRUE(planning_->wants(progress(), true));
}

}  // namespace
}  // namespace spillway
