#include "latency/fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "latency/for_tests.h"

namespace spillway {
namespace {

// Kernels of two classes that take 2 and 9 ns a byte, ten sizes each twice, and one of a third class.
Trace two_laws() {
  Trace trace{.name = "two laws", .source = "a test"};
  for (std::uint64_t size = 1; size <= 10; ++size)
    for (int twice = 0; twice < 2; ++twice) {
      trace.kernels.push_back(kernel_that_reads("slow_" + std::to_string(size), size << 20, Nanos{size << 20} * 9));
      trace.kernels.push_back(kernel_that_reads("fast", size << 20, Nanos{size << 20} * 2));
    }
  trace.kernels.push_back(kernel_that_reads("once", 5 << 20, Nanos{77}));
  return trace;
}

Fit fit_of(const Trace& trace) {
  const Trace* const traces[] = {&trace};
  return fit_latencies(traces, [](std::size_t) {});
}

const ClassFit& class_named(const Fit& fit, std::string_view name) {
  return *std::ranges::find(fit.classes, name, &ClassFit::name);
}

TEST(Fit, HoldsOutDifferentInputsAndBeatsTheMean) {
  const Fit fit = fit_of(two_laws());
  for (const char* name : {"slow", "fast"}) {
    const ClassFit& one = class_named(fit, name);
    EXPECT_EQ(one.kernels, 20u);
    EXPECT_EQ(one.inputs, 10u);
    EXPECT_EQ(one.held_out, 4u) << "two sizes, each twice";
    EXPECT_LT(one.network.most_of_nine_in_ten, 0.05);
    EXPECT_GT(one.mean.median, 0.2) << "the times differ by a factor of ten";
  }
  EXPECT_EQ(fit.all.kernels, 41u);
  EXPECT_EQ(fit.all.held_out, 8u);
  EXPECT_LT(fit.all.network.median, fit.all.mean.median);
}

TEST(Fit, WhatIsHeldOutIsNotSeen) {
  Trace trace{.name = "outlier", .source = "a test"};
  for (std::uint64_t size = 1; size <= 5; ++size)
    trace.kernels.push_back(kernel_that_reads("k", size << 20, Nanos{(size << 20) * (size == 3 ? 10 : 1)}));
  const Fit fit = fit_of(trace);
  ASSERT_EQ(class_named(fit, "k").held_out, 1u);
  EXPECT_GT(class_named(fit, "k").network.median, 0.5);
  EXPECT_NEAR(static_cast<double>(predict(fit.model, trace.kernels[2]).value), 10 * (3 << 20), 3 << 20)
      << "what goes into the file has seen it";
}

TEST(Fit, OfOneInputNothingIsHeldOut) {
  const Fit fit = fit_of(two_laws());
  EXPECT_EQ(class_named(fit, "once").held_out, 0u);
  EXPECT_NEAR(static_cast<double>(predict(fit.model, kernel_that_reads("once", 5 << 20, {})).value), 77, 1);
}

TEST(Fit, TheModelHasAllClassesByNameAndPredictsAsTheyAre) {
  const Trace trace = two_laws();
  const Fit fit = fit_of(trace);
  std::vector<std::string> names;
  for (const ClassLatency& one : fit.model.classes) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"*", "fast", "once", "slow"}));
  EXPECT_EQ(fit.model.classes.front().kernels, 41u);
  for (const Kernel& kernel : trace.kernels)
    EXPECT_NEAR(static_cast<double>(predict(fit.model, kernel).value) / static_cast<double>(kernel.duration.value), 1,
                0.05);
}

// Both read the same bytes of [m, k] and [k, m]; their operations differ by a factor of 8.
TEST(Fit, ShapesTellProductsOfTheSameBytesApart) {
  Trace trace{.name = "products", .source = "a test"};
  for (std::uint64_t scale = 1; scale <= 8; ++scale)
    for (const auto& [rows, inner] : {std::pair<std::uint64_t, std::uint64_t>{512, 512}, {64, 4096}}) {
      const std::uint64_t k = inner * scale;
      Kernel& kernel =
          trace.kernels.emplace_back(kernel_that_reads("mm", 2 * 4 * rows * k, Nanos{rows * k * rows / 1000}));
      kernel.shapes = {{rows, k}, {k, rows}};
    }
  const Fit fit = fit_of(trace);
  EXPECT_EQ(class_named(fit, "mm").inputs, 16u);
  for (const Kernel& kernel : trace.kernels)
    EXPECT_NEAR(static_cast<double>(predict(fit.model, kernel).value) / static_cast<double>(kernel.duration.value), 1,
                0.05);
}

TEST(Fit, TellsHowFarItIs) {
  const Trace trace = two_laws();
  const Trace* const traces[] = {&trace, &trace};
  std::vector<std::size_t> told;
  fit_latencies(traces, [&](std::size_t done) { told.push_back(done); });
  EXPECT_EQ(told, (std::vector<std::size_t>{1, 2, 3, 4}));
  EXPECT_EQ(classes_of(traces), 4u);
}

TEST(Fit, ErrorsAreOrderStatistics) {
  const RelativeErrors errors = errors_of({10, 3, 1, 2, 4, 5, 6, 7, 8, 9, 0});
  EXPECT_EQ(errors.median, 5);
  EXPECT_EQ(errors.most_of_nine_in_ten, 9);
  EXPECT_EQ(errors_of({7}).median, 7);
  EXPECT_EQ(errors_of({7}).most_of_nine_in_ten, 7);
}

}  // namespace
}  // namespace spillway
