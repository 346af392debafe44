#include "roofline/roofline.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

constexpr DeviceRates kDevice{.gflops = 1'000, .bandwidth = {1'000'000'000}, .launch = {500}};

Kernel product(std::uint64_t rows) {
  const auto access = [&](std::uint32_t tensor) { return Access{.tensor = {tensor}, .end = Bytes{4 * rows * rows}}; };
  return {.name = "aten::mm",
          .duration = {},
          .reads = {access(0), access(1)},
          .writes = {access(2)},
          .shapes = {{rows, rows}, {rows, rows}}};
}

TEST(Roofline, AKernelTakesAsLongAsItsTrafficOrItsArithmetic) {
  const Efficiency part = efficiency_of(OperatorClass::product);
  // 12 kB at 1 GB/s, 2 M operations at 1 TFLOPS; then 12 MB and 2 T operations.
  const double small = 12e3 * 10 * 10 / 1e3 / part.bandwidth, large = 2e12 / 1e3 / part.operations;
  EXPECT_NEAR(static_cast<double>(estimated_time(product(10), kDevice).value), small + 500, 1);
  EXPECT_NEAR(static_cast<double>(estimated_time(product(10'000), kDevice).value), large + 500, 1);
}

// Adam's step counters are on the CPU: a dry run's kernel of these uses nothing.
TEST(Roofline, AKernelThatUsesNothingTakesTheLeast) {
  EXPECT_EQ(estimated_time({.name = "aten::add_.Tensor", .duration = {}}, kDevice), Nanos{1});
}

TEST(Roofline, RowsThatNobodyKnowsCostNoWholeTable) {
  Kernel lookup{.name = "aten::embedding", .duration = {}};
  lookup.reads = {{.tensor = {0}, .end = 1_GiB, .sparse = true}, {.tensor = {1}, .end = 1_KiB}};
  lookup.writes = {{.tensor = {2}, .end = 64_KiB}};
  EXPECT_LT(estimated_time(lookup, kDevice), Nanos{200'000});  // 129 KiB at 1 GB/s
}

TEST(Roofline, ConvolutionsRunOnTensorCoresWhereThereAreSome) {
  const Work work{.operations = 1e12, .bytes = 0};
  DeviceRates device = kDevice;
  EXPECT_EQ(roofline(OperatorClass::convolution, {.operations = 0.5, .bandwidth = 1}, device, work), 2e9 + 500);
  device.tensor_gflops = 10'000;
  EXPECT_EQ(roofline(OperatorClass::convolution, {.operations = 0.5, .bandwidth = 1}, device, work), 2e8 + 500);
  EXPECT_EQ(roofline(OperatorClass::product, {.operations = 0.5, .bandwidth = 1}, device, work), 2e9 + 500);
}

TEST(Roofline, NoClassExceedsTheDeviceByMuchOrStandsStill) {
  for (const OperatorClass one : kOperatorClasses) {
    EXPECT_GT(efficiency_of(one).operations, 0.01) << to_text(one);
    EXPECT_GT(efficiency_of(one).bandwidth, 0.01) << to_text(one);
    EXPECT_LE(efficiency_of(one).bandwidth, 1.0) << to_text(one);
  }
}

Trace two_products() {
  Trace trace{.name = "two", .source = "test"};
  for (std::uint32_t t = 0; t < 3; ++t) trace.tensors.push_back({.name = "t", .bytes = Bytes{400}, .persistent = true});
  trace.kernels = {product(10), product(10)};
  trace.kernels[1].gap = Nanos{77};
  return trace;
}

TEST(Roofline, ATraceSaysHowItsTimesCameAbout) {
  const Trace trace = with_estimated_times(two_products(), kDevice, "a100");
  EXPECT_EQ(trace.estimated, "roofline, a100");
  EXPECT_EQ(trace.kernels[1].duration, estimated_time(product(10), kDevice));
  EXPECT_EQ(trace.kernels[1].gap, Nanos{});
}

TEST(Roofline, AKnownTotalIsMetToTheNanosecond) {
  for (const std::uint64_t total : {1'000'000'007u, 3u}) {
    const Trace trace = with_estimated_times(two_products(), kDevice, "a100", Nanos{total});
    EXPECT_EQ((trace.kernels[0].duration + trace.kernels[1].duration).value, total);
    EXPECT_LE(trace.kernels[0].duration, trace.kernels[1].duration + Nanos{1});
  }
  EXPECT_EQ(with_estimated_times(two_products(), kDevice, "a100", Nanos{11'400'000'000}).estimated,
            "roofline, a100, scaled to 11.4 s");
}

}  // namespace
}  // namespace spillway
