#include "trace/noise.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

Trace many_kernels() {
  Trace trace{.name = "many", .source = "test"};
  for (int id = 0; id < 10'000; ++id)
    trace.kernels.push_back({.name = "k", .duration = Nanos{1'000'000}, .gap = Nanos{7}});
  return trace;
}

TEST(Noise, EachKernelIsOffByAPartOfItsOwnUpToTheLimitEitherWay) {
  const Trace trace = many_kernels(), noisy = with_noise(trace, {.percent = 20, .seed = 7});
  ASSERT_EQ(noisy.kernels.size(), trace.kernels.size());
  Nanos sum;
  std::uint64_t shorter = 0, close = 0;
  for (const Kernel& kernel : noisy.kernels) {
    EXPECT_GE(kernel.duration, Nanos{800'000});
    EXPECT_LE(kernel.duration, Nanos{1'200'000});
    EXPECT_EQ(kernel.gap, Nanos{7});
    sum += kernel.duration;
    shorter += kernel.duration < Nanos{1'000'000};
    close += kernel.duration > Nanos{900'000} && kernel.duration < Nanos{1'100'000};
  }
  // A mean has a standard deviation of 0.2 / sqrt(3 x 10000) = 0.12 %, a count of half of them 50.
  EXPECT_NEAR(seconds(sum) / 10, 1, 0.005);
  EXPECT_NEAR(static_cast<double>(shorter), 5000, 200);
  EXPECT_NEAR(static_cast<double>(close), 5000, 200);
}

TEST(Noise, ASeedIsWhatItWasAndAnotherIsNot) {
  const Trace trace = many_kernels();
  EXPECT_EQ(with_noise(trace, {.percent = 20, .seed = 7}), with_noise(trace, {.percent = 20, .seed = 7}));
  EXPECT_NE(with_noise(trace, {.percent = 20, .seed = 7}), with_noise(trace, {.percent = 20, .seed = 8}));
  EXPECT_EQ(with_noise(trace, {.percent = 0, .seed = 7}), trace);
}

}  // namespace
}  // namespace spillway
