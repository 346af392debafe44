#include "latency/features.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway {
namespace {

TEST(Features, AClassIsANameWithoutANumberBehindIt) {
  EXPECT_EQ(class_of("conv_12"), "conv");
  EXPECT_EQ(class_of("conv.0"), "conv");
  EXPECT_EQ(class_of("conv2d"), "conv2d");
  EXPECT_EQ(class_of("aten::log10"), "aten::log10");
  EXPECT_EQ(class_of("GatherV2_Forward"), "GatherV2_Forward");
  EXPECT_EQ(class_of("12"), "12");
  EXPECT_EQ(class_of("_12"), "_12") << "nothing would be left";
  EXPECT_EQ(class_of(""), "");
}

TEST(Features, AreLogarithmsOfWhatIsReadAndWritten) {
  Kernel kernel{.name = "k", .duration = Nanos{1}};
  kernel.reads = {{.tensor = {0}, .begin = Bytes{10}, .end = Bytes{20}}, {.tensor = {1}, .end = Bytes{100}}};
  kernel.writes = {{.tensor = {2}, .end = Bytes{7}}};
  const auto log = [](double value) { return static_cast<float>(std::log1p(value)); };
  EXPECT_EQ(features_of(kernel), (Features{log(100), log(10), log(7)}));
  EXPECT_EQ(bytes_moved(kernel), 117);
  kernel.flops = 1e12;
  EXPECT_EQ(features_of(kernel)[3], log(1e12));
  EXPECT_EQ(features_of(Kernel{.name = "nothing", .duration = Nanos{1}}), Features{});
}

TEST(Features, AreTheLastSizesOfTheFirstShapes) {
  Kernel kernel{.name = "k", .duration = Nanos{1}};
  kernel.shapes = {{5, 7}, {2, 3, 4, 5, 6}, {}, {9}};
  const auto log = [](double value) { return static_cast<float>(std::log1p(value)); };
  EXPECT_EQ(features_of(kernel), (Features{0, 0, 0, 0, 0, 0, log(5), log(7), log(6), log(4), log(5), log(6)}))
      << "2 x 3 is one size; a scalar has none; the fourth does not count";
}

}  // namespace
}  // namespace spillway
