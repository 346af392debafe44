#include "latency/latency_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "latency/for_tests.h"
#include "trace/random_trace.h"
#include "trace/validate.h"

namespace spillway {
namespace {

// Of one example, so it says the same rate of all.
Network rate_of(const Kernel& kernel) {
  return train({{{.features = features_of(kernel), .output = output_of(kernel)}}});
}

TEST(LatencyModel, AsksTheClassAndElseTheNetworkForAll) {
  LatencyModel model;
  model.classes = {
      {.name = "*", .kernels = 1, .network = rate_of(kernel_that_reads("x", 999, Nanos{5'000'000}))},
      {.name = "conv", .kernels = 1, .network = rate_of(kernel_that_reads("conv", 999, Nanos{1'000'000}))}};
  EXPECT_NEAR(static_cast<double>(predict(model, kernel_that_reads("conv", 999, {})).value), 1e6, 10);
  EXPECT_NEAR(static_cast<double>(predict(model, kernel_that_reads("conv_7", 1999, {})).value), 2e6, 20)
      << "twice the bytes";
  EXPECT_NEAR(static_cast<double>(predict(model, kernel_that_reads("linear", 999, {})).value), 5e6, 50);
}

TEST(LatencyModel, PredictedTimesAreThoseOfTheKernelsAndNothingElseChanges) {
  LatencyModel model;
  model.classes = {{.name = "*", .kernels = 1, .network = rate_of(kernel_that_reads("x", 999, Nanos{2'000'000}))}};
  const Trace trace = random_trace(7);
  Trace predicted = with_predicted_times(trace, model);
  ASSERT_EQ(predicted.kernels.size(), trace.kernels.size());
  for (std::size_t at = 0; at < trace.kernels.size(); ++at) {
    EXPECT_EQ(predicted.kernels[at].duration, predict(model, trace.kernels[at]));
    predicted.kernels[at].duration = trace.kernels[at].duration;
  }
  EXPECT_EQ(predicted, trace);
}

// Whatever a file's networks say, even what no float holds.
TEST(LatencyModel, PredictedIterationsAreValid) {
  EXPECT_TRUE(rc::check([] {
    const double most = *rc::gen::element(1.0, 1e3, 1e9);
    LatencyModel model;
    model.classes = {
        {.name = "*", .kernels = 1, .network = random_network(*rc::gen::arbitrary<std::uint64_t>(), most)}};
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(validate(with_predicted_times(trace, model), "predicted").has_value());
  }));
}

}  // namespace
}  // namespace spillway
