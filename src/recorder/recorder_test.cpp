#include "recorder/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "recorder/known_shapes.h"
#include "recorder/recorder_script.h"

namespace spillway {
namespace {

TEST(Recorder, TensorsKeepTheirLabelsWhereverTheyWereMade) {
  Script script;
  script.data("w");
  train_steps(script, 4);
  const auto iteration = script.recorder.iteration();
  ASSERT_TRUE(iteration);
  ASSERT_EQ(iteration->labels.size(), iteration->trace.tensors.size());
  for (const char* name : {"w", "x", "scratch", "grad_w"})
    EXPECT_EQ(std::ranges::count(iteration->labels, Script::label_of(name)), 1) << name;
}

TEST(Recorder, ReplaysOmitTheStatisticsThatTheirKernelsUpdate) {
  Script script;
  for (const char* name : {"w", "mean", "shared"}) script.data(name);
  for (int step = 0; step < 4; ++step) {
    script.run({.name = "norm", .reads = {"w"}, .makes = {"x"}, .replayable = true, .statistics = {"mean", "mean"}});
    script.run({.name = "in_place", .writes = {"x"}, .replayable = true});
    script.run({.name = "norm", .reads = {"shared"}, .makes = {"y"}, .replayable = true, .statistics = {"shared"}});
    script.run({.name = "random", .reads = {"x"}, .makes = {"z"}});
    for (const char* name : {"x", "y", "z"}) script.drop(name);
    script.run({.name = "sgd", .phase = Phase::optimizer, .writes = {"w"}});
    script.anchor();
  }
  const Trace trace = script.trace();
  ASSERT_EQ(trace.kernels.size(), 5u);
  ASSERT_TRUE(trace.kernels[0].replay);
  ASSERT_EQ(trace.kernels[0].replay->omits.size(), 1u);
  EXPECT_EQ(trace.kernels[0].replay->omits[0], trace.kernels[0].writes[0].tensor);
  EXPECT_FALSE(trace.kernels[1].replay) << "it changes what was there";
  EXPECT_FALSE(trace.kernels[2].replay) << "it needs what lies in the same memory";
  EXPECT_FALSE(trace.kernels[3].replay);
  EXPECT_FALSE(trace.kernels[4].replay);
}

// A random mask that `zeros_like` made, and nobody told of who filled it.
TEST(Recorder, WhatSomethingElseWritesToIsNotMadeByAReplay) {
  Script script;
  script.data("w");
  for (int step = 0; step < 4; ++step) {
    script.run({.name = "zeros_like", .reads = {"w"}, .makes = {"mask"}, .replayable = true});
    script.written_outside("mask");
    script.run({.name = "mul", .reads = {"mask", "w"}, .makes = {"x"}, .replayable = true});
    script.run({.name = "sgd", .phase = Phase::optimizer, .reads = {"x"}, .writes = {"w"}});
    for (const char* name : {"mask", "x"}) script.drop(name);
    script.anchor();
  }
  const Trace trace = script.trace();
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_FALSE(trace.kernels[0].replay);
  EXPECT_TRUE(trace.kernels[1].replay);
}

TEST(KnownShapes, AreKeptOnceAndNotForEver) {
  KnownShapes known;
  const std::vector<std::int64_t> flat{2, 4, 3, 0, 1, 7};
  const auto* shapes = known.find_or_add(1, flat);
  ASSERT_NE(shapes, nullptr);
  EXPECT_EQ(*shapes, (std::vector<Sizes>{{4, 3}, {}, {7}}));
  std::uint64_t hash = 2;
  while (known.find_or_add(hash, flat) != nullptr) ASSERT_LT(++hash, 1'000'000u);
  EXPECT_EQ(known.find_or_add(1, {}), shapes) << "what is known stays where it is";
}

TEST(Recorder, AveragesFollowWhatChangesAndBeginAnewWhenToldTo) {
  Script script;
  script.data("w");
  train_steps(script, 4);
  const Nanos before = script.recorder.progress().average;
  script.slower(100);
  train_steps(script, 2);
  const Nanos after = script.recorder.progress().average;
  EXPECT_GT(after, before + Nanos{4 * 40});
  EXPECT_LT(after, before + Nanos{4 * 100});
  script.recorder.restart_averages();
  EXPECT_EQ(script.recorder.progress().repetitions, 0u);
  train_steps(script, 2);
  EXPECT_EQ(script.recorder.progress().repetitions, 2u);
  EXPECT_EQ(script.recorder.progress().average, before + Nanos{4 * 100});
}

TEST(Recorder, TimesOfADeviceTakeThePlaceOfTheHostsOneStepLater) {
  constexpr KernelTime kFast{Nanos{1000}, Nanos{7}}, kSlow{Nanos{2000}, Nanos{7}};
  Script script;
  script.data("w");
  script.on_device = kFast;
  train_steps(script, 3);
  EXPECT_NE(script.recorder.progress().iteration, 0u);
  EXPECT_EQ(script.recorder.progress().average, kFast.duration * 4);
  const std::uint64_t averaged = script.recorder.progress().repetitions;
  script.on_device = kSlow;
  train_steps(script, 1);
  EXPECT_EQ(script.recorder.progress().repetitions, averaged + 1);
  EXPECT_EQ(script.recorder.progress().average, kFast.duration * 4) << "the slow ones are not known yet";
  train_steps(script, 3);
  EXPECT_GT(script.recorder.progress().average, kFast.duration * 4);
  train_steps(script, 9);  // Of a trace it is the median.
  const Trace trace = script.trace();
  for (const Kernel& kernel : trace.kernels) {
    EXPECT_EQ(kernel.duration, kSlow.duration) << kernel.name;
    EXPECT_EQ(kernel.gap, kSlow.gap) << kernel.name;
  }
}

TEST(Recorder, WhatADeviceLaunchesNothingForTakesNoTime) {
  Script script;
  script.data("w");
  script.on_device = KernelTime{Nanos{1000}, Nanos{7}};
  for (int step = 0; step < 4; ++step) {
    script.zero_grad("w");
    script.forward_backward("w");
    const auto device = std::exchange(script.on_device, std::nullopt);
    script.run({.name = "looks", .reads = {"w"}});
    script.on_device = device;
    script.step("w");
  }
  const Trace trace = script.trace();
  for (const Kernel& kernel : trace.kernels)
    EXPECT_EQ(kernel.duration, kernel.name == "looks" ? Nanos{} : Nanos{1000}) << kernel.name;
}

TEST(KernelTimes, WhatIsFarOffOnceIsHardlySeenInTheAverageAndWhatGoesOnIs) {
  constexpr Nanos kUsual{2'000'000}, kStopped{5'000'000'000}, kSlow{100'000'000};
  for (const Nanos odd : {kStopped, Nanos{}})
    for (const int when : {0, 1, 2, 7}) {
      KernelTimes times;
      for (int i = 0; i < 8; ++i) times.add({.duration = i == when ? odd : kUsual, .gap = kUsual});
      EXPECT_LT(times.average().duration, kUsual * 3) << when;
      EXPECT_GT(times.average().duration * 2, kUsual) << when;
      EXPECT_EQ(times.average().gap, kUsual);
      for (int i = 0; i < 12; ++i) times.add({.duration = kSlow, .gap = kUsual});
      EXPECT_GT(times.average().duration * 20, kSlow * 19);
    }
}

TEST(Recorder, PlainTrainingIsOneIterationFromStepToStep) {
  Script script;
  script.data("w");
  for (int step = 0; step < 3; ++step) {
    script.zero_grad("w");
    script.forward_backward("w");
    script.step("w", true);
  }
  const Trace trace = script.trace();
  EXPECT_EQ(names(trace), (Names{"randn", "mm", "mm_backward", "sgd", "momentum"}));
  EXPECT_EQ(trace[trace.kernels[1].reads[1].tensor].kind, TensorKind::weight);
  EXPECT_EQ(written_by(trace, 1, 1).kind, TensorKind::workspace);
  EXPECT_EQ(written_by(trace, 2).kind, TensorKind::gradient);
  EXPECT_EQ(written_by(trace, 4).kind, TensorKind::optimizer_state);
  EXPECT_EQ(trace.kernels[3].phase, Phase::optimizer);
}

TEST(Recorder, AGradientThatDiesBeforeTheNextIterationIsFreedByTheLastKernel) {
  Script script;
  script.data("w");
  for (int step = 0; step < 3; ++step) {
    script.forward_backward("w");
    script.step("w");
    if (step < 2) script.zero_grad("w");  // the script ends with its gradients alive
  }
  const Trace trace = script.trace();
  const TensorId gradient = trace.kernels[2].writes[0].tensor;
  EXPECT_EQ(trace.kernels.back().frees, std::vector<TensorId>{gradient});
  EXPECT_FALSE(trace[gradient].carried_from);
}

TEST(Recorder, AGradientThatDiesInTheNextForwardPassIsCarried) {
  Script script;
  script.data("w");
  for (int step = 0; step < 3; ++step) {
    script.run({.name = "first", .makes = {"noise"}});
    script.zero_grad("w");
    script.forward_backward("w");
    script.run({.name = "last", .reads = {"noise"}});
    script.drop("noise");
    script.step("w");
  }
  const Trace trace = script.trace();
  const TensorId gradient = trace.kernels[3].writes[0].tensor;
  EXPECT_EQ(trace[gradient].carried_from, gradient);
  EXPECT_EQ(trace.kernels[0].frees, std::vector<TensorId>{gradient});
}

TEST(Recorder, ATensorThatIsReplacedWhileItsSuccessorLivesBecomesTwo) {
  Script script;
  script.data("w");
  train_steps(script, 3);  // The old loss dies when the new one is there.
  const Trace trace = script.trace();
  const TensorId young = trace.kernels[1].writes[0].tensor;
  EXPECT_EQ(trace.kernels[1].frees.size(), 2u);  // scratch, and the old loss
  std::size_t carried = 0;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].carried_from == young && TensorId{t} != young) ++carried;
  EXPECT_EQ(carried, 1u);
}

// Old segments are kept, and scripts may make very long ones only.
TEST(Recorder, ASegmentThatIsTooLongHoldsNoMemory) {
  LiveStorages live;
  SegmentBuilder builder(1, 2);
  for (std::uint64_t kernel = 1; kernel <= 3; ++kernel) {
    const StorageId made{kernel};
    live[made] = {.storage = {.id = made, .bytes = Bytes{1}, .birth_segment = 1}};
    builder.add({.name = "made", .births = {{.storage = made, .bytes = Bytes{1}}}}, {}, live);
    EXPECT_EQ(builder.segment().kernels.size(), kernel <= 2 ? kernel : 0);
  }
  EXPECT_EQ(builder.segment().kernels_seen, 3u);
  EXPECT_EQ(builder.segment().kernels.capacity() + builder.segment().births.capacity(), 0u);
}

TEST(Recorder, WhatIsPutDownIntoAnotherPlaceEachTimeIsTheSameIteration) {
  for (const bool before_the_step : {true, false}) {
    Script script;
    script.data("w");
    script.data("losses");
    for (std::uint64_t step = 0; step < 4; ++step) {
      script.zero_grad("w");
      script.forward_backward("w");
      if (before_the_step) script.run({.name = "copy_", .reads = {"loss"}, .fills = "losses", .at = 8 * step});
      script.step("w");
      if (!before_the_step) script.run({.name = "copy_", .reads = {"loss"}, .fills = "losses", .at = 8 * step});
    }
    EXPECT_EQ(script.trace().kernels.size(), 5u);
  }
}

// Two optimizers, or two steps by hand, each with its half of one storage.
TEST(Recorder, AnUpdateOfAnotherPartIsAnotherStep) {
  for (const Phase phase : {Phase::optimizer, Phase::forward}) {
    Script script;
    script.data("w");
    for (std::uint64_t step = 0; step < 8; ++step) {
      script.run({.name = "mm", .reads = {"w"}, .makes = {"gradient"}});
      script.run(
          {.name = "sgd", .phase = phase, .reads = {"gradient"}, .updates = true, .fills = "w", .at = 8 * (step % 2)});
      script.drop("gradient");
      script.recorder.anchor();
    }
    EXPECT_EQ(script.trace().kernels.size(), 4u);
  }
}

// It looks less and less often where the same operators never use the same memory, but it goes on looking.
TEST(Recorder, AnIterationIsFoundAfterAnyNumberOfStepsInWhichMemoryNeverRepeatedItself) {
  for (const bool same_operators : {true, false}) {
    Script script;
    script.data("w");
    const auto step = [&](const std::string& state, std::uint64_t shapes) {
      script.run({.name = "mm", .reads = {"w"}, .writes = {state}, .shapes = shapes});
      train(script, "w");
    };
    constexpr int kStates = 37;  // more than an iteration has steps
    for (int i = 0; i < kStates; ++i) script.data("state" + std::to_string(i));
    for (int i = 0; i < 3000; ++i) {
      step("state" + std::to_string(i % kStates), 1);
      ASSERT_FALSE(script.recorder.has_iteration());
    }
    int steps = 0;
    for (; steps < 200 && !script.recorder.has_iteration(); ++steps) step("state0", same_operators ? 1 : 2);
    EXPECT_EQ(steps > 4, same_operators) << steps;
    EXPECT_LE(steps, 70);
    EXPECT_EQ(script.trace().kernels.size(), 5u);
  }
}

TEST(Recorder, WhatTouchesNothingBeforeAnythingIsMadeIsNoPartOfIt) {
  Script script;
  script.data("w");
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < step; ++i) script.run({.name = "empty_like"});
    train(script, "w");
  }
  EXPECT_EQ(names(script.trace()), (Names{"randn", "mm", "mm_backward", "sgd"}));
}

TEST(Recorder, EvaluatingInBetweenIsNoPartOfIt) {
  for (const int every : {1, 2, 3}) {
    Script script;
    script.data("w");
    for (int step = 0; step < 8; ++step) {
      script.zero_grad("w");
      script.forward_backward("w");
      script.step("w");
      if (step % every == 0) script.evaluate("w");
    }
    EXPECT_EQ(names(script.trace()), (Names{"randn", "mm", "mm_backward", "sgd"})) << "every " << every;
  }
}

// An evaluation, whose results die, and then an average of the weights, which lives until the next one.
TEST(Recorder, WhatIsMadeAfterEachStepIsAPartOfItIfMuchOfItLivesOn) {
  for (const std::uint64_t mebibytes : {1, 16}) {
    Script script;
    script.data("w");
    script.data("v");
    for (int step = 0; step < 8; ++step) {
      for (const std::string weight : {"w", "v"}) train(script, weight);
      script.run({.name = "evaluate", .reads = {"w", "v"}, .makes = {"out"}, .bytes = 16 << 20});
      script.drop("out");
      script.run({.name = "average", .reads = {"w", "v"}, .makes = {"new_average"}, .bytes = mebibytes << 20});
      script.drop_if_there("average");
      script.rename("new_average", "average");
    }
    Names expected = {"randn", "mm", "mm_backward", "sgd", "randn", "mm", "mm_backward", "sgd"};
    if (mebibytes == 16) expected.insert(expected.begin() + 4, "average");
    EXPECT_EQ(names(script.trace()), expected) << mebibytes;
  }
}

TEST(Recorder, AnOtherLastBatchOfAnEpochIsNoPartOfIt) {
  Script script;
  script.data("w");
  for (int step = 0; step < 9; ++step) {
    script.zero_grad("w");
    script.forward_backward("w", true, step % 3 == 2 ? 64 : 128);
    script.step("w");
  }
  const Trace trace = script.trace();
  EXPECT_EQ(written_by(trace, 0).bytes, Bytes{128});
}

TEST(Recorder, BatchesOfADataSetInMemoryAreInputs) {
  Script script;
  script.data("w");
  for (int batch = 0; batch < 4; ++batch) script.data("batch" + std::to_string(batch));
  for (int step = 0; step < 4; ++step) {
    script.zero_grad("w");
    script.run({.name = "mm", .reads = {"batch" + std::to_string(step), "w"}, .makes = {"y"}});
    script.run({.name = "backward", .phase = Phase::backward, .reads = {"y"}, .makes = {"grad_w"}, .drops = {"y"}});
    script.step("w");
  }
  const Trace trace = script.trace();
  const Tensor& batch = trace[trace.kernels[0].reads[0].tensor];
  EXPECT_EQ(batch.kind, TensorKind::input);
  EXPECT_FALSE(batch.persistent);
}

TEST(Recorder, DurationsAreMediansOfTheIterationsSeen) {
  Script script;
  script.data("w");
  for (const std::uint64_t duration : {7u, 30u, 20u, 1000u, 10u, 40u}) {
    script.run(
        {.name = "backward", .phase = Phase::backward, .reads = {"w"}, .makes = {"grad_w"}, .duration = duration});
    script.step("w");
    script.zero_grad("w");
  }
  EXPECT_EQ(script.trace().kernels[0].duration, Nanos{30});  // of 10, 20, 30, 40 and 1000
}

TEST(Recorder, TimeWaitedForFaultsIsNoDurationAndNoGap) {
  Recorder recorder(1);
  recorder.anchor();
  recorder.kernel({.name = "mm",
                   .start = Nanos{100},
                   .end = Nanos{400},
                   .stalled_at_start = Nanos{50},
                   .stalled_at_end = Nanos{300}});
  recorder.kernel({.name = "mm",
                   .start = Nanos{500},
                   .end = Nanos{600},
                   .stalled_at_start = Nanos{330},
                   .stalled_at_end = Nanos{330}});
  recorder.leave_out(Nanos{15});
  recorder.kernel({.name = "mm",
                   .start = Nanos{700},
                   .end = Nanos{800},
                   .stalled_at_start = Nanos{330},
                   .stalled_at_end = Nanos{330}});
  recorder.anchor();
  const auto trace = recorder.finish();
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->kernels[0].duration, Nanos{50});
  EXPECT_EQ(trace->kernels[1].gap, Nanos{70});
  EXPECT_EQ(trace->kernels[2].gap, Nanos{85});
}

TEST(Recorder, WhatAnotherThreadMakesIsBornWhereItIsUsed) {
  Script script;
  script.data("w");
  for (int step = 0; step < 5; ++step) {
    // The next batch is there early or late, and the one for later is never used.
    const auto prefetch = [&](int batch) { script.elsewhere("batch" + std::to_string(batch)); };
    if (step == 0) prefetch(0);
    if (step == 1 || step == 3) prefetch(step);
    script.zero_grad("w");
    const std::string batch = "batch" + std::to_string(step);
    script.run({.name = "mm", .reads = {batch, "w"}, .makes = {"y"}});
    if (step == 1 || step == 3) prefetch(step + 1);
    script.run({.name = "backward", .phase = Phase::backward, .reads = {"y"}, .makes = {"grad_w"}, .drops = {"y"}});
    script.drop(batch);
    script.step("w");
  }
  const Trace trace = script.trace();
  const Tensor& batch = trace[trace.kernels[0].reads[0].tensor];
  EXPECT_EQ(batch.kind, TensorKind::input);
  EXPECT_FALSE(batch.persistent || batch.carried_from);
}

TEST(Recorder, ChangingShapesAreAnErrorThatSaysWhatWasSeen) {
  Script script;
  script.data("w");
  for (std::uint64_t step = 0; step < 6; ++step) {
    script.zero_grad("w");
    script.forward_backward("w", true, 64 + step);
    script.step("w");
  }
  const auto trace = script.recorder.finish();
  ASSERT_FALSE(trace);
  for (const char* part : {"6 optimizer steps", "4, 4, 4", "randn makes 68 and 69 bytes", "--iteration N"})
    EXPECT_NE(trace.error().message.find(part), std::string::npos) << trace.error().message;
}

TEST(Recorder, ManyKernelsWithoutAStepAreNotKept) {
  Script script(0, 30);
  script.data("w");
  for (int i = 0; i < 20; ++i) script.evaluate("w");
  for (int i = 0; i < 3; ++i) train(script, "w");
  EXPECT_EQ(script.trace().kernels.size(), 4u);
  for (int i = 0; i < 20; ++i) script.evaluate("w");
  for (int i = 0; i < 3; ++i) train(script, "w");
  EXPECT_EQ(script.trace().kernels.size(), 4u);
}

TEST(Recorder, AnIterationOfTooManyKernelsIsAnErrorThatSaysSo) {
  for (const std::uint64_t wanted : {0u, 2u}) {
    Script script(wanted, 3);
    script.data("w");
    for (int i = 0; i < 5; ++i) train(script, "w");
    const auto trace = script.recorder.finish();
    ASSERT_FALSE(trace);
    EXPECT_NE(trace.error().message.find(wanted == 0 ? "4 (too many to keep)" : "at most 3 are kept"),
              std::string::npos)
        << trace.error().message;
  }
}

TEST(Recorder, TooFewStepsAreAnErrorThatSaysHowManyAreNeeded) {
  Script script;
  script.data("w");
  script.forward_backward("w");
  script.step("w");
  const auto trace = script.recorder.finish();
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("made 1 optimizer step and at least 3"), std::string::npos);
}

TEST(Recorder, WithoutAnOptimizerItSpeaksOfBackwardPasses) {
  Recorder recorder(0);
  for (int pass = 0; pass < 2; ++pass) recorder.anchor();
  const auto trace = recorder.finish();
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("the script made 2 backward passes and at least 3"), std::string::npos)
      << trace.error().message;
}

TEST(Recorder, AnIterationAskedForIsTakenAsItIs) {
  Script script(2);
  script.data("w");
  for (std::uint64_t step = 0; step < 40; ++step) {
    script.zero_grad("w");
    script.forward_backward("w", true, 64 + step);
    script.step("w");
  }
  EXPECT_EQ(written_by(script.trace(), 0).bytes, Bytes{66});
}

TEST(Recorder, AnIterationThatNeverCameIsAnError) {
  Script script(9);
  script.data("w");
  train_steps(script, 3);
  const auto trace = script.recorder.finish();
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("the script made 3 optimizer steps"), std::string::npos);
}

}  // namespace
}  // namespace spillway
