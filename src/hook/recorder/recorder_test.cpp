#include "hook/recorder/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "trace/validate.h"

namespace spillway {
namespace {

// A script in miniature: tensors by name, and a clock that each kernel moves on.
class Script {
 public:
  explicit Script(std::uint64_t iteration = 0, std::size_t most_kernels = 1000) : recorder(iteration, most_kernels) {}

  struct Call {
    std::string_view name;
    Phase phase = Phase::forward;
    std::vector<std::string> reads{}, writes{};
    std::vector<std::string> makes{}, drops{};  // inside it
    bool updates = false;                       // by hand, without an optimizer
    std::uint64_t shapes = 1;
    std::uint64_t duration = 10;
    std::uint64_t bytes = 64;  // of what it makes
  };
  void run(const Call& call) {
    KernelEvent event{.name = call.name,
                      .phase = call.phase,
                      .updates = call.updates || call.phase == Phase::optimizer,
                      .shapes = call.shapes};
    for (const auto& name : call.reads) touch(event, name, false);
    for (const auto& name : call.writes) touch(event, name, true);
    for (const auto& name : call.makes)
      event.births.push_back({.storage = make(name), .bytes = Bytes{call.bytes}, .label = label_of(name)});
    for (const auto& name : call.drops) event.deaths.push_back(take(name));
    event.start = Nanos{clock_ += 5};
    event.end = Nanos{clock_ += call.duration + slower_};
    recorder.kernel(event);
  }
  static TensorLabel label_of(const std::string& name) { return {std::hash<std::string>{}(name)}; }
  // Each kernel from now on, by so much.
  void slower(std::uint64_t nanos) { slower_ = nanos; }
  void data(const std::string& name) {
    recorder.born_outside({.storage = make(name), .bytes = Bytes{64}, .label = label_of(name)});
  }
  void elsewhere(const std::string& name) { recorder.born_elsewhere({.storage = make(name), .bytes = Bytes{64}}); }
  void drop(const std::string& name) { recorder.died_outside(take(name)); }
  void drop_if_there(const std::string& name) {
    if (storages_.contains(name)) drop(name);
  }

  // One micro-batch of a layer with the weight `w`; the loss lives until the next one replaces it.
  void forward_backward(const std::string& w, bool first = true, std::uint64_t batch = 64) {
    run({.name = "randn", .makes = {"x"}, .bytes = batch});
    run({.name = "mm", .reads = {"x", w}, .makes = {"new_loss", "scratch"}, .drops = {"scratch"}, .bytes = batch});
    drop_if_there("loss");
    rename("new_loss", "loss");
    if (first)
      run({.name = "mm_backward", .phase = Phase::backward, .reads = {"x", w}, .makes = {"grad_" + w}});
    else
      run({.name = "mm_backward", .phase = Phase::backward, .reads = {"x", w}, .writes = {"grad_" + w}});
    drop("x");
  }
  void step(const std::string& w, bool lazy = false) {
    if (lazy && !storages_.contains("momentum_" + w))
      run({.name = "clone", .phase = Phase::optimizer, .reads = {"grad_" + w}, .makes = {"momentum_" + w}});
    run({.name = "sgd", .phase = Phase::optimizer, .reads = {"grad_" + w}, .writes = {w}});
    if (lazy) run({.name = "momentum", .phase = Phase::optimizer, .writes = {"momentum_" + w}});
    recorder.anchor();
  }
  void zero_grad(const std::string& w) { drop_if_there("grad_" + w); }

  void evaluate(const std::string& w) {
    run({.name = "index", .makes = {"val"}});
    run({.name = "mm", .reads = {"val", w}, .makes = {"out"}});
    drop_if_there("old_out");
    rename("out", "old_out");  // Python keeps it until the next evaluation
    drop("val");
  }

  Trace trace() {
    const auto found = recorder.finish();
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    if (!found) return {};
    const auto valid = validate(*found, "trace");
    EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
    return *found;
  }

  Recorder recorder;

 private:
  StorageId make(const std::string& name) { return storages_[name] = {++last_}; }
  StorageId take(const std::string& name) {
    const StorageId id = storages_.at(name);
    storages_.erase(name);
    return id;
  }
  void rename(const std::string& from, const std::string& to) {
    const StorageId id = take(from);
    storages_[to] = id;
  }
  void touch(KernelEvent& event, const std::string& name, bool writes) {
    event.touches.push_back(
        {.storage = storages_.at(name), .begin = {}, .end = Bytes{64}, .reads = true, .writes = writes});
  }

  std::map<std::string, StorageId> storages_;
  std::uint64_t last_ = 0;
  std::uint64_t clock_ = 100, slower_ = 0;
};

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> result;
  for (const Kernel& kernel : trace.kernels) result.push_back(kernel.name);
  return result;
}
using Names = std::vector<std::string>;

void train(Script& script, const std::string& w) {
  script.zero_grad(w);
  script.forward_backward(w);
  script.step(w);
}

const Tensor& written_by(const Trace& trace, std::size_t kernel, std::size_t place = 0) {
  return trace[trace.kernels[kernel].writes[place].tensor];
}

void train_steps(Script& script, int steps, std::uint64_t batch = 64) {
  for (int step = 0; step < steps; ++step) {
    script.zero_grad("w");
    script.forward_backward("w", true, batch);
    script.step("w");
  }
}

TEST(Recorder, WhatDoesNotComeAnyMoreGivesWayToWhatIsRepeatedNow) {
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
  for (int step = 0; step < 3; ++step) {
    script.zero_grad("w");
    script.forward_backward("w");  // the old loss dies when the new one is there
    script.step("w");
  }
  const Trace trace = script.trace();
  const TensorId young = trace.kernels[1].writes[0].tensor;
  EXPECT_EQ(trace.kernels[1].frees.size(), 2u);  // scratch, and the old loss
  std::size_t carried = 0;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].carried_from == young && TensorId{t} != young) ++carried;
  EXPECT_EQ(carried, 1u);
}

TEST(Recorder, GradientAccumulationIsOneIteration) {
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

TEST(Recorder, TwoOptimizersOfTheSameShapeAreOneIteration) {
  Script script;
  script.data("d");
  script.data("g");
  for (int step = 0; step < 4; ++step)
    for (const char* net : {"d", "g"}) {
      script.zero_grad(net);
      script.forward_backward(net);
      script.step(net);
    }
  EXPECT_EQ(script.trace().kernels.size(), 8u);
}

TEST(Recorder, ACriticWithSeveralStepsWaitsForTheGenerators) {
  Script script;
  script.data("critic");
  script.data("generator");
  for (int round = 0; round < 5; ++round)
    for (const char* net : {"critic", "critic", "critic", "generator"}) {
      script.zero_grad(net);
      script.forward_backward(net);
      script.step(net);
    }
  EXPECT_EQ(script.trace().kernels.size(), 16u);
}

// Up to 16 steps are one iteration, once it is there twice; where an optimizer steps more rarely, its steps are none.
TEST(Recorder, OptimizersInTurnsAreOneIterationWhereverTheScriptEnds) {
  for (const int critic_steps : {3, 15, 16, 20, 32, 40})
    for (const int more : {0, 1, 7, 14}) {
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

TEST(Recorder, WithoutTheGeneratorsStepsItIsNoIteration) {
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

TEST(Recorder, AccumulationByHandOverTooManyPassesIsNoIteration) {
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

TEST(Recorder, WhatIsTrainedAfterwardsIsTheIterationOnceThatDoesNotComeForThreeTimesItsLength) {
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

TEST(Recorder, TwoThatAreTrainedInTurnsAreOneIterationUnlessTheTurnsAreLong) {
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

TEST(Recorder, AnotherOptimizersStepNowAndThenIsNoPartOfIt) {
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

TEST(Recorder, WhatWasTrainedByHandBeforeTheFirstOptimizerIsForgotten) {
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

TEST(Recorder, ParametersThatAreNotUpdatedNowAndThenAreOneOptimizers) {
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

TEST(Recorder, AccumulationByHandIsOneIteration) {
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

TEST(Recorder, StepsInARowAreOneIterationThatStartsWithItsForwardPass) {
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

TEST(Recorder, ViewsBeforeAnythingIsMadeAreNoPartOfIt) {
  Script script;
  script.data("w");
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < step; ++i) script.run({.name = "detach"});
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
  for (int step = 0; step < 3; ++step) {
    script.zero_grad("w");
    script.forward_backward("w");
    script.step("w");
  }
  const auto trace = script.recorder.finish();
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("the script made 3 optimizer steps"), std::string::npos);
}

}  // namespace
}  // namespace spillway
