#include "trace/validate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "trace/random_trace.h"

namespace spillway {
namespace {

constexpr TensorId kWeight{0}, kActivation{1}, kGradient{2};

Access all_of(const Trace& trace, TensorId id) { return {.tensor = id, .end = trace[id].bytes}; }

// Forward reads the weight and makes the activation; backward reads it and makes the gradient; the optimizer applies
// it.
Trace small_trace() {
  Trace t{.name = "small", .source = "test"};
  t.tensors = {Tensor{"weight", {100}, TensorKind::weight, true, {}},
               Tensor{"activation", {50}, TensorKind::activation, false, {}},
               Tensor{"gradient", {100}, TensorKind::gradient, false, {}}};
  t.kernels = {
      Kernel{"forward", Phase::forward, {10}, {}, {all_of(t, kWeight)}, {all_of(t, kActivation)}, {}, {}},
      Kernel{
          "backward", Phase::backward, {10}, {}, {all_of(t, kActivation)}, {all_of(t, kGradient)}, {kActivation}, {}},
      Kernel{"optimizer", Phase::optimizer, {10}, {}, {all_of(t, kGradient)}, {all_of(t, kWeight)}, {kGradient}, {}}};
  return t;
}

void expect_error(const Trace& trace, const std::vector<std::string>& parts) {
  const auto checked = validate(trace, "cannot use trace t");
  ASSERT_FALSE(checked);
  const std::string& error = checked.error().message;
  EXPECT_TRUE(error.starts_with("cannot use trace t: ")) << error;
  for (const std::string& part : parts) EXPECT_TRUE(error.contains(part)) << "no '" << part << "' in: " << error;
}

RC_GTEST_PROP(TraceValidation, AcceptsWhatRandomTraceMakes, (std::uint32_t seed)) {
  const auto checked = validate(random_trace(seed), "x");
  if (!checked) RC_FAIL(checked.error().message);
}

TEST(TraceValidation, AcceptsARandomTraceWhoseKernelsHappenToTakeNoTime) {
  const auto checked = validate(random_trace(3938649, {.layers_most = 6}), "x");
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(TraceValidation, AcceptsTheSmallTrace) {
  const auto checked = validate(small_trace(), "x");
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(TraceValidation, SizesAreFromOneTo2To63AndSumToNoMore) {
  Trace t = small_trace();
  t.tensors[1].bytes = {};
  expect_error(t, {"tensor 1 ('activation') has 0 bytes"});
  t.tensors[1].bytes = {(std::uint64_t{1} << 63) + 1};
  expect_error(t, {"tensor 1", "more than 2^63"});
  t.tensors[1].bytes = {std::uint64_t{1} << 63};
  expect_error(t, {"tensor 1", "sum"});
}

TEST(TraceValidation, TimesMustSumToSomethingThatFits) {
  Trace t = small_trace();
  t.kernels[1].duration = {std::uint64_t{1} << 63};
  expect_error(t, {"kernel 1 ('backward')", "2^57 ns"});
  t = small_trace();
  t.kernels[2].gap = {~std::uint64_t{0}};
  expect_error(t, {"kernel 2", "2^57 ns"});
  t = small_trace();
  for (Kernel& kernel : t.kernels) kernel.duration = {};
  expect_error(t, {"0 ns"});
  t.kernels.clear();
  expect_error(t, {"no kernels"});
}

TEST(TraceValidation, AReplayOmitsWhatItsKernelWritesAndWritesTheRestWhole) {
  Trace t = small_trace();
  t.kernels[0].replay.emplace();
  EXPECT_TRUE(validate(t, "x"));
  t.kernels[0].replay->omits = {kWeight};
  expect_error(t, {"kernel 0 ('forward')", "omits tensor 0 ('weight')", "does not write it"});
  t.kernels[0].replay->omits = {TensorId{9}};
  expect_error(t, {"kernel 0", "omits tensor 9, which does not exist"});
  t.kernels[0].replay->omits = {kActivation, kActivation};
  expect_error(t, {"omits tensor 1 ('activation') twice"});

  t.kernels[0].replay->omits.clear();
  t.kernels[0].writes = {{.tensor = kActivation, .begin = {20}, .end = {50}},
                         {.tensor = kActivation, .begin = {0}, .end = {20}}};
  EXPECT_TRUE(validate(t, "x")) << "all of it, in two parts";
  t.kernels[0].writes[1].end = {19};
  expect_error(t, {"kernel 0", "writes tensor 1 ('activation') in part"});
  t.kernels[0].writes = {{.tensor = kActivation, .end = {50}, .sparse = true}};
  expect_error(t, {"kernel 0", "in part"});
  t.kernels[0].replay->omits = {kActivation};
  EXPECT_TRUE(validate(t, "x"));
}

TEST(TraceValidation, ShapesHaveNoMoreElementsThanThereCanBe) {
  Trace t = small_trace();
  const std::uint64_t half = std::uint64_t{1} << 32;
  t.kernels[2].shapes = {{half, half / 2}, {}, {0, half}};
  EXPECT_TRUE(validate(t, "x"));
  t.kernels[2].shapes = {{half, half / 2 + 1}};
  expect_error(t, {"kernel 2 ('optimizer')", "2^63 elements"});
  t.kernels[2].shapes = {{0, half, half}};
  expect_error(t, {"2^63 elements"});
}

TEST(TraceValidation, FlopsAreFiniteAndNotNegative) {
  for (const double flops : {-1.0, std::nan(""), HUGE_VAL}) {
    Trace t = small_trace();
    t.kernels[0].flops = flops;
    expect_error(t, {"kernel 0", "flops"});
  }
}

TEST(TraceValidation, AnUnknownTensorIsRefusedWhereverItStands) {
  Trace t = small_trace();
  t.kernels[1].reads.push_back({.tensor = {3}, .end = {1}});
  expect_error(t, {"kernel 1 ('backward') reads tensor 3", "there are 3"});
  t = small_trace();
  t.kernels[1].writes.push_back({.tensor = {9}, .end = {1}});
  expect_error(t, {"kernel 1", "writes tensor 9"});
  t = small_trace();
  t.kernels[1].frees.push_back({3});
  expect_error(t, {"kernel 1", "frees tensor 3"});
  t = small_trace();
  t.tensors[2].carried_from = TensorId{3};
  expect_error(t, {"tensor 2", "carried from tensor 3", "does not exist"});
}

TEST(TraceValidation, RangesLieWithinTheTensorAndAreNotEmpty) {
  for (const auto& [begin, end] : {std::pair{0, 51}, {10, 10}, {20, 10}, {50, 50}, {60, 70}}) {
    Trace t = small_trace();
    t.kernels[1].reads[0] = {
        .tensor = kActivation, .begin = {static_cast<std::uint64_t>(begin)}, .end = {static_cast<std::uint64_t>(end)}};
    expect_error(t, {"kernel 1", "bytes", "tensor 1 ('activation')"});
  }
}

TEST(TraceValidation, NothingIsReadBeforeItIsWrittenButInputsAndWhatIsAliveAtTheStart) {
  Trace t = small_trace();
  std::swap(t.kernels[0].writes, t.kernels[0].reads);  // the weight is written, the activation read
  expect_error(t, {"kernel 0", "reads tensor 1", "no earlier kernel writes"});
  t.tensors[1].kind = TensorKind::input;
  EXPECT_TRUE(validate(t, "x"));
}

TEST(TraceValidation, OnlyAWorkspaceMayBeReadByTheKernelThatFirstWritesIt) {
  Trace t = small_trace();
  t.kernels[0].reads.push_back(all_of(t, kActivation));
  expect_error(t, {"kernel 0", "reads tensor 1"});
  t.tensors[1].kind = TensorKind::workspace;
  EXPECT_TRUE(validate(t, "x"));
}

TEST(TraceValidation, TheDeadAreNotUsedOrFreedAgain) {
  Trace t = small_trace();
  t.kernels[2].reads.push_back(all_of(t, kActivation));
  expect_error(t, {"kernel 2", "reads tensor 1", "an earlier kernel frees"});
  t = small_trace();
  t.kernels[2].writes.push_back(all_of(t, kActivation));
  expect_error(t, {"kernel 2", "writes tensor 1", "an earlier kernel frees"});
  t = small_trace();
  t.kernels[2].frees.push_back(kActivation);
  expect_error(t, {"kernel 2", "frees tensor 1", "already freed"});
  t = small_trace();
  t.kernels[1].frees = {kActivation, kActivation};
  expect_error(t, {"kernel 1", "already freed"});
}

TEST(TraceValidation, WhatPersistsOrIsNotYetBornIsNotFreed) {
  Trace t = small_trace();
  t.kernels[1].frees.push_back(kWeight);
  expect_error(t, {"kernel 1", "frees tensor 0", "persistent"});
  t = small_trace();
  t.kernels[0].frees.push_back(kGradient);
  expect_error(t, {"kernel 0", "frees tensor 2", "not alive yet"});
}

TEST(TraceValidation, ATensorThatNobodyUsesIsRefusedUnlessItPersists) {
  Trace t = small_trace();
  t.tensors.push_back({"idle", {8}, TensorKind::other, false, {}});
  expect_error(t, {"tensor 3 ('idle') is never used"});
  t.tensors[3].persistent = true;
  EXPECT_TRUE(validate(t, "x"));
}

TEST(TraceValidation, AGradientThatTheNextIterationFreesIsCarriedFromItself) {
  Trace t = small_trace();
  t.tensors[2].carried_from = kGradient;
  expect_error(t, {"tensor 2", "not alive at the end"});
  t.kernels[2].frees.clear();
  expect_error(t, {"tensor 2", "never freed", "persistent"});
  t.kernels[0].frees = {kGradient};
  const auto checked = validate(t, "x");
  EXPECT_TRUE(checked) << checked.error().message;
  // In its second life it must be written before it is read, and it must not die again.
  t.kernels[1].reads.push_back(all_of(t, kGradient));
  expect_error(t, {"kernel 1", "reads tensor 2", "no earlier kernel writes"});
  t.kernels[1].reads.pop_back();
  t.kernels[2].frees = {kGradient};
  expect_error(t, {"tensor 2", "not alive at the end"});
}

TEST(TraceValidation, OneTensorCanTakeOverAnothersBytes) {
  Trace t = small_trace();
  t.tensors.push_back({"old", {100}, TensorKind::gradient, false, kGradient});
  t.kernels[2].frees.clear();
  t.kernels[0].reads.push_back(all_of(t, {3}));
  EXPECT_TRUE(validate(t, "x"));
  t.kernels[0].frees = {{3}};
  EXPECT_TRUE(validate(t, "x"));
  t.kernels[1].reads.push_back(all_of(t, {3}));
  expect_error(t, {"kernel 1", "reads tensor 3", "an earlier kernel frees"});
}

TEST(TraceValidation, ACarryIsOneToOneOfEqualSizeAndNeverPersistent) {
  Trace base = small_trace();
  base.tensors.push_back({"old", {100}, TensorKind::gradient, false, kGradient});
  base.kernels[2].frees.clear();
  base.kernels[0].frees = {{3}};
  ASSERT_TRUE(validate(base, "x"));
  Trace t = base;
  t.tensors[3].bytes = {99};
  expect_error(t, {"tensor 3", "must be equal"});
  t = base;
  t.tensors[3].persistent = true;
  expect_error(t, {"tensor 3", "persistent and has carried_from"});
  t = base;
  t.tensors[3].carried_from = kWeight;
  expect_error(t, {"tensor 3", "carried from tensor 0 ('weight'), which is persistent"});
  t = base;
  t.tensors.push_back(t.tensors[3]);
  expect_error(t, {"tensor 4", "as another tensor is"});
}

}  // namespace
}  // namespace spillway
