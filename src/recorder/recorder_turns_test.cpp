#include <gtest/gtest.h>

#include <algorithm>

#include "recorder/recorder_script.h"

namespace spillway {
namespace {

// Which optimizer steps are together one iteration.

TEST(RecorderTurns, WhatDoesNotComeAnyMoreGivesWayToWhatIsRepeatedNow) {
  Script script;
  script.data("w");
  train_steps(script, 6, 64);
  EXPECT_EQ(script.recorder.progress().iteration, 1u);
  train_steps(script, 3, 128);  // for a while
  train_steps(script, 1, 64);
  EXPECT_EQ(script.recorder.progress().iteration, 1u);
  train_steps(script, 6, 128);  // for good
  EXPECT_EQ(script.recorder.progress().iteration, 2u);
  EXPECT_EQ(written_by(script.trace(), 0).bytes, Bytes{128});
}

TEST(RecorderTurns, GradientAccumulationIsOneIteration) {
  Script script;
  script.data("w");
  for (int step = 0; step < 3; ++step) {
    script.zero_grad("w");
    script.forward_backward("w");
    script.forward_backward("w", false);
    script.step("w");
  }
  EXPECT_EQ(names(script.trace()), (Names{"randn", "mm", "mm_backward", "randn", "mm", "mm_backward", "sgd"}));
}

TEST(RecorderTurns, TwoOptimizersOfTheSameShapeAreOneIteration) {
  Script script;
  script.data("d");
  script.data("g");
  for (int step = 0; step < 4; ++step)
    for (const char* net : {"d", "g"}) train(script, net);
  EXPECT_EQ(script.trace().kernels.size(), 8u);
}

TEST(RecorderTurns, ACriticWithSeveralStepsWaitsForTheGenerators) {
  Script script;
  script.data("critic");
  script.data("generator");
  for (int round = 0; round < 5; ++round)
    for (const char* net : {"critic", "critic", "critic", "generator"}) {
      train(script, net);
    }
  EXPECT_EQ(script.trace().kernels.size(), 16u);
}

// Up to 16 steps are one iteration, once it is there twice; where an optimizer steps more rarely, its steps are none.
TEST(RecorderTurns, OptimizersInTurnsAreOneIterationWhereverTheScriptEnds) {
  for (const int critic_steps : {3, 15, 16, 20, 32, 40})
    for (const int more : {0, 1, 7, 12}) {
      SCOPED_TRACE(std::to_string(critic_steps) + " and " + std::to_string(more));
      Script script;
      script.data("critic");
      script.data("generator");
      for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < critic_steps; ++i) train(script, "critic");
        train(script, "generator");
      }
      for (int i = 0; i < more; ++i) train(script, "critic");
      ASSERT_TRUE(script.recorder.has_iteration());
      EXPECT_EQ(script.trace().kernels.size(),
                critic_steps < 16 ? 4u * static_cast<std::size_t>(critic_steps + 1) : 4u);
    }
}

// The iteration found is c c g c, so that the c that ends it may begin the next one as well.
TEST(RecorderTurns, OneStepTooManyDoesNotHideTheNextRepetition) {
  Script script;
  script.data("c");
  script.data("g");
  const auto round = [&] {
    for (const char* net : {"c", "c", "c", "g"}) train(script, net);
  };
  for (int i = 0; i < 4; ++i) round();
  const auto before = script.recorder.progress();
  ASSERT_EQ(before.steps_each, 4u);
  train(script, "c");
  for (int i = 0; i < 4; ++i) round();
  EXPECT_EQ(script.recorder.progress().iteration, before.iteration);
  EXPECT_GE(script.recorder.progress().repetitions, before.repetitions + 3);
}

TEST(RecorderTurns, WhoseTurnsAreLongOverdueTrainsNoMore) {
  const std::vector<std::string> nets = {"a", "b", "c", "d"};
  Script script;
  for (const auto& net : nets) script.data(net);
  for (int round = 0; round < 8; ++round)
    for (const auto& net : nets) train(script, net);
  EXPECT_EQ(script.recorder.progress().steps_each, 4u);
  for (int step = 0; step < 12; ++step) {
    train(script, "a");
    EXPECT_EQ(script.recorder.progress().steps_each, 4u);
  }
  for (int step = 0; step < 2; ++step) train(script, "a");
  EXPECT_EQ(script.recorder.progress().steps_each, 1u);
  EXPECT_EQ(script.trace().kernels.size(), 4u);
}

TEST(RecorderTurns, ItIsKnownWhichStepsOfTheIterationAreDone) {
  const std::vector<std::string> nets = {"a", "b", "c"};
  Script script;
  for (const auto& net : nets) script.data(net);
  for (int step = 0; step < 7; ++step) train(script, nets[step % 3]);
  ASSERT_EQ(script.recorder.progress().steps_each, 3u);
  const auto after_step_of = [&](const char* net) {
    train(script, net);
    return script.recorder.progress().steps_done;
  };
  const std::size_t known = *script.recorder.progress().steps_done;
  EXPECT_EQ(after_step_of("b"), (known + 1) % 3);
  EXPECT_EQ(after_step_of("c"), (known + 2) % 3);
  EXPECT_EQ(after_step_of("a"), known);
  EXPECT_EQ(after_step_of("a"), std::nullopt);
}

TEST(RecorderTurns, WithoutTheGeneratorsStepsItIsNoIteration) {
  Script script;
  script.data("critic");
  script.data("generator");
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) train(script, "critic");
    EXPECT_TRUE(script.recorder.has_iteration());
    train(script, "generator");
  }
  EXPECT_FALSE(script.recorder.has_iteration());
  const auto trace = script.recorder.finish();
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("lacks the steps of other parameters"), std::string::npos)
      << trace.error().message;
}

// Its generator has another batch each time. Its steps have to be compared with each other, not with the critic's.
TEST(RecorderTurns, WhyThereIsNoneIsSaidOfTheSameOptimizersSteps) {
  Script script;
  script.data("critic");
  script.data("generator");
  for (std::uint64_t batch = 64; batch <= 256; batch += 64) {
    train(script, "critic");
    train(script, "generator", batch);
  }
  const auto trace = script.recorder.finish();
  ASSERT_FALSE(trace);
  EXPECT_TRUE(
      trace.error().message.contains("the last 2 and the 2 before, of the same optimizers, differ at kernel 1 of "
                                     "4: randn makes 192 and 256 bytes"))
      << trace.error().message;
}

TEST(RecorderTurns, AccumulationByHandOverTooManyPassesIsNoIteration) {
  Script script;
  script.data("w");
  for (int step = 0; step < 3; ++step) {
    for (int micro = 0; micro < 40; ++micro) {
      script.forward_backward("w", micro == 0);
      script.recorder.anchor();
    }
    script.run({.name = "sub_", .reads = {"grad_w"}, .writes = {"w"}, .updates = true});
    script.zero_grad("w");
  }
  EXPECT_FALSE(script.recorder.has_iteration());
}

TEST(RecorderTurns, WhatIsTrainedAfterwardsIsTheIterationOnceThatDoesNotComeForThreeTimesItsLength) {
  for (const int steps : {3, 4}) {
    Script script;
    script.data("first");
    script.data("second");
    for (int step = 0; step < 5; ++step) train(script, "first");
    for (int step = 0; step < steps; ++step) {
      script.zero_grad("second");
      script.forward_backward("second");
      script.forward_backward("second", false);
      script.step("second");
    }
    EXPECT_TRUE(script.recorder.has_iteration());
    EXPECT_EQ(script.trace().kernels.size(), steps == 3 ? 4u : 7u);
  }
}

TEST(RecorderTurns, TwoThatAreTrainedInTurnsAreOneIterationUnlessTheTurnsAreLong) {
  for (const int turn : {5, 8, 9, 12, 15, 20}) {
    Script script;
    script.data("first");
    script.data("second");
    for (int round = 0; round < 4; ++round)
      for (const char* net : {"first", "second"})
        for (int step = 0; step < turn; ++step) train(script, net);
    ASSERT_TRUE(script.recorder.has_iteration());
    EXPECT_EQ(script.trace().kernels.size(), turn <= 8 ? 8u * static_cast<std::size_t>(turn) : 4u) << turn;
  }
}

TEST(RecorderTurns, AnotherOptimizersStepNowAndThenIsNoPartOfIt) {
  Script script;
  script.data("w");
  script.data("temperature");
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int step = 0; step < 50; ++step) train(script, "w");
    train(script, "temperature");
    EXPECT_TRUE(script.recorder.has_iteration());
  }
  train(script, "w");
  EXPECT_EQ(names(script.trace()), (Names{"randn", "mm", "mm_backward", "sgd"}));
}

TEST(RecorderTurns, WhatWasTrainedByHandBeforeTheFirstOptimizerIsForgotten) {
  Script script;
  for (const char* w : {"a", "b"}) {
    script.data(w);
    for (int step = 0; step < 4; ++step) {
      script.forward_backward(w);
      script.recorder.anchor();
      script.run({.name = "sub_", .reads = {std::string("grad_") + w}, .writes = {w}, .updates = true});
      script.zero_grad(w);
    }
  }
  script.recorder.forget_anchors();
  script.data("w");
  for (int step = 0; step < 4; ++step) train(script, "w");
  EXPECT_EQ(names(script.trace()), (Names{"randn", "mm", "mm_backward", "sgd"}));
}

TEST(RecorderTurns, ParametersThatAreNotUpdatedNowAndThenAreOneOptimizers) {
  Script script;
  script.data("expert");
  script.data("w");
  for (int step = 0; step < 9; ++step) {
    script.zero_grad("w");
    script.forward_backward("w");
    if (step % 3 == 0)
      script.run({.name = "sgd", .phase = Phase::optimizer, .reads = {"grad_w"}, .writes = {"expert"}});
    script.step("w");
  }
  EXPECT_EQ(names(script.trace()), (Names{"randn", "mm", "mm_backward", "sgd"}));
}

TEST(RecorderTurns, AccumulationByHandIsOneIteration) {
  Script script;
  script.data("w");
  for (int step = 0; step < 4; ++step) {
    for (int micro = 0; micro < 3; ++micro) {
      script.forward_backward("w", micro == 0);
      script.recorder.anchor();  // the end of a backward pass
    }
    script.run({.name = "sub_", .reads = {"grad_w"}, .writes = {"w"}, .updates = true});
    script.zero_grad("w");
  }
  const Names all = names(script.trace());
  EXPECT_EQ(all.size(), 10u);
  EXPECT_EQ(std::ranges::count(all, "sub_"), 1);
}

TEST(RecorderTurns, StepsInARowAreOneIterationThatStartsWithItsForwardPass) {
  Script script;
  script.data("a");
  script.data("b");
  for (int step = 0; step < 5; ++step) {
    for (const char* w : {"a", "b"}) {
      script.zero_grad(w);
      script.forward_backward(w);
    }
    script.step("a");
    script.step("b");
  }
  const Trace trace = script.trace();
  EXPECT_EQ(names(trace).front(), "randn");
  EXPECT_EQ(trace.kernels.size(), 8u);
}

TEST(RecorderTurns, WhatIsKeptIsBoundedSoThatARowOfTooManyKernelsIsNotFound) {
  for (const std::size_t most_kernels : {20u, 40u}) {  // It has 16, and is seen when it is there twice.
    Script script(0, most_kernels);
    script.data("critic");
    script.data("generator");
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 3; ++i) train(script, "critic");
      train(script, "generator");
    }
    EXPECT_EQ(script.recorder.has_iteration(), most_kernels == 40);
  }
}

}  // namespace
}  // namespace spillway
