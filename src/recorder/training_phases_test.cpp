#include "recorder/training_phases.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace spillway {
namespace {

using Kernel = TrainingPhases::Kernel;
using Ended = TrainingPhases::Ended;

constexpr Kernel kForward{.gradients = true, .differentiates = true};
constexpr Kernel kWithoutGradients{};
constexpr Kernel kWithGradients{.gradients = true};
constexpr Kernel kByHand{.writes_parameter = true};
Kernel backward(int pass = 7) { return {.backward_pass = pass}; }
Touch touch(std::uint64_t storage, bool writes) {
  return {.storage = {storage}, .begin = {}, .end = {}, .writes = writes};
}

struct TrainingPhasesTest : testing::Test {
  Phase phase_of(const Kernel& kernel) { return run(kernel).phase; }
  Ended ended_before(const Kernel& kernel) { return run(kernel).ended; }
  TrainingPhases::Begun run(const Kernel& kernel) { return phases.kernel_starts(thread, kernel); }
  void step(int pass = kNoBackwardPass) {
    phases.step_starts(thread, "SGD", pass);
    phases.step_ends(thread, true);
  }
  TrainingPhases phases;
  ThreadTraining thread, another;
};

TEST_F(TrainingPhasesTest, ABackwardPassAndAStepHaveTheirPhase) {
  EXPECT_EQ(phase_of(kForward), Phase::forward);
  EXPECT_EQ(phase_of(backward()), Phase::backward);
  EXPECT_TRUE(phases.step_starts(thread, "SGD", kNoBackwardPass));
  EXPECT_EQ(phase_of(kWithoutGradients), Phase::optimizer);
  EXPECT_TRUE(phases.step_ends(thread, true).has_value());
  EXPECT_FALSE(phases.step_starts(thread, "SGD", kNoBackwardPass)) << "it is not the first one";
  EXPECT_TRUE(phases.step_ends(thread, true).has_value());
  EXPECT_EQ(phase_of(kWithoutGradients), Phase::forward);
}

TEST_F(TrainingPhasesTest, WithoutAnOptimizerTheFirstKernelAfterABackwardPassEndsIt) {
  EXPECT_EQ(ended_before(kForward), Ended::nothing);
  EXPECT_EQ(ended_before(backward()), Ended::nothing);
  EXPECT_EQ(ended_before({.ignored = true}), Ended::nothing);
  EXPECT_EQ(ended_before(kByHand), Ended::backward_pass);
  EXPECT_EQ(ended_before(kForward), Ended::nothing);
  run(backward());
  EXPECT_EQ(phases.script_ends(), Ended::backward_pass);
  EXPECT_EQ(phases.script_ends(), Ended::nothing);
  run(backward());
  step();
  EXPECT_EQ(ended_before(kForward), Ended::nothing) << "the optimizer says it";
}

TEST_F(TrainingPhasesTest, ByHandWhatWritesParametersUpdates) {
  EXPECT_FALSE(run(kForward).updates);
  EXPECT_TRUE(run(kByHand).updates);
  step();
  EXPECT_FALSE(run(kByHand).updates) << "an optimizer's step does";
  phases.step_starts(thread, "SGD", kNoBackwardPass);
  EXPECT_TRUE(run(kWithoutGradients).updates);
}

TEST_F(TrainingPhasesTest, StepsWithinABackwardPassAreOneThatEndsWithIt) {
  run(backward());
  step(7);
  EXPECT_EQ(ended_before(backward()), Ended::nothing);
  step(7);
  phases.step_starts(thread, "SGD", 7);
  EXPECT_EQ(phase_of(backward(7)), Phase::optimizer);
  EXPECT_EQ(phase_of(backward(8)), Phase::backward) << "of a closure";
  const auto ended = phases.step_ends(thread, true);
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->within_backward);
  EXPECT_EQ(phases.kernel_starts(another, kWithoutGradients).ended, Ended::nothing) << "it trains nothing";
  EXPECT_EQ(ended_before(kWithoutGradients), Ended::steps_in_backward);
  EXPECT_EQ(ended_before(kWithoutGradients), Ended::nothing);
  step(9);
  EXPECT_EQ(phases.script_ends(), Ended::steps_in_backward);
  EXPECT_EQ(phases.script_ends(), Ended::nothing);
}

TEST_F(TrainingPhasesTest, AStepWithinAStepIsAPartOfIt) {
  EXPECT_FALSE(phases.step_ends(thread, true)) << "it has begun before anybody looked";
  phases.step_starts(thread, "Wrapper", kNoBackwardPass);
  phases.step_starts(thread, "SGD", kNoBackwardPass);
  EXPECT_FALSE(phases.step_ends(thread, true));
  EXPECT_EQ(phase_of(kWithoutGradients), Phase::optimizer);
  EXPECT_TRUE(phases.step_ends(thread, true));
  EXPECT_FALSE(phases.step_ends(thread, true));
}

TEST_F(TrainingPhasesTest, AClosureEndsWithItsBackwardPass) {
  phases.step_starts(thread, "LBFGS", kNoBackwardPass);
  EXPECT_EQ(phase_of(kWithGradients), Phase::optimizer) << "nobody knows yet that it calls one";
  EXPECT_EQ(phase_of(kForward), Phase::forward);
  EXPECT_EQ(phase_of(kWithGradients), Phase::forward);
  EXPECT_EQ(phase_of(backward()), Phase::backward);
  EXPECT_EQ(phase_of(kWithoutGradients), Phase::optimizer);
  EXPECT_EQ(phase_of(kWithGradients), Phase::forward) << "the optimizer switches gradients off for itself";
  phases.step_ends(thread, true);
  phases.step_starts(thread, "LBFGS", kNoBackwardPass);
  EXPECT_EQ(phase_of(kWithGradients), Phase::forward) << "the closure makes a batch";
  phases.step_ends(thread, true);
  phases.step_starts(thread, "SGD", kNoBackwardPass);
  EXPECT_EQ(phase_of(kWithGradients), Phase::optimizer) << "that one calls none";
}

TEST_F(TrainingPhasesTest, AnOptimizerThatComputesWithGradientsGoesOnAfterItsClosure) {
  phases.step_starts(thread, "Old", kNoBackwardPass);
  EXPECT_EQ(phase_of(kForward), Phase::forward);
  EXPECT_EQ(phase_of(backward()), Phase::backward);
  EXPECT_EQ(phase_of(kWithGradients), Phase::optimizer);
}

TEST_F(TrainingPhasesTest, WhatAStepHasWrittenIsThatOfTheLastOneThatWasWatched) {
  const std::vector<Touch> touches{touch(2, true), touch(1, true), touch(3, false)};
  const std::vector<Updated> written{{{1}, {}}, {{2}, {}}};
  phases.step_starts(thread, "SGD", kNoBackwardPass);
  run({.touches = touches});
  EXPECT_EQ(phases.step_ends(thread, true)->written, written);
  phases.step_starts(thread, "SGD", kNoBackwardPass);
  EXPECT_EQ(phases.step_ends(thread, false)->written, written);
  phases.step_starts(thread, "SGD", kNoBackwardPass);
  EXPECT_TRUE(phases.step_ends(thread, true)->written.empty());
}

TEST_F(TrainingPhasesTest, ThreadsThatDoNotTrainAreRecordedUntilOneDoes) {
  EXPECT_TRUE(phases.kernel_starts(another, kWithoutGradients).is_recorded);
  EXPECT_TRUE(run(kForward).is_recorded);
  EXPECT_FALSE(phases.kernel_ends(another, false)) << "it has begun before";
  EXPECT_FALSE(phases.kernel_starts(another, kWithoutGradients).is_recorded);
  EXPECT_FALSE(phases.kernel_ends(another, false));
  EXPECT_FALSE(phases.kernel_ends(another, true));
  EXPECT_FALSE(phases.kernel_ends(thread, true));
  EXPECT_TRUE(phases.kernel_ends(thread, false));
  EXPECT_EQ(phases.not_recorded(), 2u);
  phases.trains(another);
  EXPECT_TRUE(phases.kernel_ends(another, false));
}

TEST_F(TrainingPhasesTest, WhoHasTrainedOnceMayEvaluateLater) {
  phases.trains(another);
  step();
  EXPECT_TRUE(phases.is_recorded(another));
  step();
  EXPECT_FALSE(phases.is_recorded(another));
  EXPECT_TRUE(phases.is_recorded(thread));
}

// What several threads do, and the same told in other words: who trained since which end, instead of when.
struct Model {
  struct Thread {
    ThreadTraining state;
    std::vector<int> steps;  // open ones: the backward pass that each was made in
    std::set<std::uint64_t> written;
    bool since_last_end = false, since_the_one_before = false;
    bool is_training() const { return since_last_end || since_the_one_before; }
  };
  static constexpr std::size_t kThreads = 3;

  void train(Thread& thread) { thread.since_last_end = somebody = true; }
  void end() {
    ++ends;
    for (Thread& thread : threads) thread.since_the_one_before = std::exchange(thread.since_last_end, false);
  }
  bool is_recorded(const Thread& thread) const { return thread.is_training() || !somebody; }

  void kernel(Thread& thread, const Kernel& kernel) {
    const bool steps = !thread.steps.empty(), in_pass = kernel.backward_pass != kNoBackwardPass;
    const bool is_backward = in_pass && !(steps && thread.steps.front() == kernel.backward_pass);
    const bool step_is_over = !in_pass && open_in_backward && thread.is_training();
    if (step_is_over) end();
    open_in_backward = open_in_backward && !step_is_over;
    const auto begun = phases.kernel_starts(thread.state, kernel);
    RC_ASSERT((begun.phase == Phase::backward) == is_backward);
    RC_ASSERT(begun.phase != Phase::optimizer || steps);
    // In a step only a closure is something else, and that computes with gradients.
    RC_ASSERT(!steps || is_backward || begun.phase == Phase::optimizer || kernel.gradients);
    RC_ASSERT(!steps || is_backward || begun.phase == Phase::forward || !kernel.differentiates);
    RC_ASSERT(begun.updates == (any_step ? begun.phase == Phase::optimizer : kernel.writes_parameter));
    if (begun.phase != Phase::forward || kernel.writes_parameter || kernel.differentiates) train(thread);
    bool pass_is_over = false;
    if (!kernel.ignored && thread.is_training()) {
      pass_is_over = last_was_backward && !is_backward && !any_step;
      last_was_backward = is_backward;
    }
    if (pass_is_over) end();
    RC_ASSERT((begun.ended == Ended::steps_in_backward) == step_is_over);
    RC_ASSERT((begun.ended == Ended::backward_pass) == pass_is_over);
    RC_ASSERT(begun.is_recorded == (!kernel.ignored && is_recorded(thread)));
    if (begun.phase == Phase::optimizer)
      for (const Touch& touch : kernel.touches)
        if (touch.writes) thread.written.insert(touch.storage.value);
    const bool recorded = phases.kernel_ends(thread.state, kernel.ignored);
    RC_ASSERT(recorded == begun.is_recorded);
    not_recorded += !kernel.ignored && !recorded;
  }
  void step_starts(Thread& thread, int pass) {
    train(thread);
    if (thread.steps.empty()) thread.written.clear();
    thread.steps.push_back(pass);
    RC_ASSERT(phases.step_starts(thread.state, pass % 2 == 0 ? "SGD" : "LBFGS", pass) ==
              !std::exchange(any_step, true));
  }
  void step_ends(Thread& thread) {
    const auto ended = phases.step_ends(thread.state, true);
    RC_ASSERT(ended.has_value() == (thread.steps.size() == 1));
    if (ended) {
      RC_ASSERT(ended->within_backward == (thread.steps.front() != kNoBackwardPass));
      RC_ASSERT(std::ranges::equal(ended->written, thread.written, {}, [](Updated one) { return one.storage.value; }));
      ended->within_backward ? void(open_in_backward = true) : end();
    }
    if (!thread.steps.empty()) thread.steps.pop_back();
  }

  TrainingPhases phases;
  std::vector<Thread> threads{kThreads};
  bool somebody = false, any_step = false, open_in_backward = false, last_was_backward = false;
  std::uint64_t ends = 0, not_recorded = 0;
};

RC_GTEST_PROP(TrainingPhasesProperty, IsAsTheModelOfWhatThreadsDo, ()) {
  Model model;
  const auto may = [] { return *rc::gen::arbitrary<bool>(); };
  for (int left = *rc::gen::inRange(0, 60); left > 0; --left) {
    Model::Thread& thread = model.threads[*rc::gen::inRange<std::size_t>(0, Model::kThreads)];
    const int pass = *rc::gen::element(kNoBackwardPass, kNoBackwardPass, 1, 2);
    const int what = *rc::gen::inRange(0, 6);
    if (what == 0) {
      model.step_starts(thread, pass);
    } else if (what == 1) {
      model.step_ends(thread);
    } else {
      const bool gradients = may();
      const std::vector<Touch> touches{touch(*rc::gen::inRange<std::uint64_t>(1, 5), may())};
      model.kernel(thread, {.gradients = gradients,
                            .differentiates = gradients && may(),
                            .writes_parameter = what == 2,
                            .ignored = what == 3 && may(),
                            .backward_pass = pass,
                            .touches = touches});
    }
  }
  RC_ASSERT(model.phases.not_recorded() == model.not_recorded);
  RC_ASSERT((model.phases.script_ends() == Ended::steps_in_backward) == model.open_in_backward);
}

// As the hook does it: each thread has a state of its own, and one lock is around all calls.
TEST(TrainingPhasesThreads, EachStateIsItsThreadsOwn) {
  constexpr int kSteps = 100;
  Mutex mutex;
  TrainingPhases phases;
  int steps = 0;
  const auto train = [&](bool trains) {
    ThreadTraining own;
    for (int step = 0; step < kSteps; ++step) {
      for (const Kernel& kernel : {trains ? kForward : kWithoutGradients, trains ? backward() : kWithoutGradients}) {
        const MutexLock lock(mutex);
        EXPECT_EQ(phases.kernel_starts(own, kernel).phase == Phase::backward, kernel.backward_pass == 7);
      }
      if (!trains) continue;
      {
        const MutexLock lock(mutex);
        phases.step_starts(own, "SGD", kNoBackwardPass);
      }
      const MutexLock lock(mutex);
      EXPECT_EQ(phases.kernel_starts(own, kWithoutGradients).phase, Phase::optimizer);
      steps += phases.step_ends(own, true).has_value();
    }
  };
  {
    const std::jthread first(train, true), second(train, true), beside(train, false);
  }
  EXPECT_EQ(steps, 2 * kSteps);
}

}  // namespace
}  // namespace spillway
