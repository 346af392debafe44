#include "roofline/operations.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway {
namespace {

Access of(std::uint32_t tensor, std::uint64_t floats) { return {.tensor = {tensor}, .end = Bytes{4 * floats}}; }

Kernel kernel(std::string name, std::vector<Sizes> shapes, std::vector<std::uint64_t> reads,
              std::vector<std::uint64_t> writes) {
  Kernel result{.name = std::move(name), .duration = {}, .shapes = std::move(shapes)};
  std::uint32_t tensor = 0;
  for (const std::uint64_t floats : reads) result.reads.push_back(of(tensor++, floats));
  for (const std::uint64_t floats : writes) result.writes.push_back(of(tensor++, floats));
  return result;
}

TEST(Operations, AMatrixProductTakesTwoForEachTripleOfItsSizes) {
  EXPECT_EQ(operations_of(kernel("aten::mm", {{3, 5}, {5, 7}}, {15, 35}, {21})), 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::addmm", {{7}, {3, 5}, {5, 7}}, {7, 15, 35}, {21})), 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::bmm", {{2, 3, 5}, {2, 5, 7}}, {30, 70}, {42})), 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::linear", {{2, 3, 5}, {7, 5}, {7}}, {30, 35, 7}, {42})), 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::mv", {{3, 5}, {5}}, {15, 5}, {3})), 2 * 3 * 5);
  EXPECT_EQ(operations_of(kernel("aten::dot", {{5}, {5}}, {5, 5}, {1})), 2 * 5);
}

TEST(Operations, OfABroadcastProductTheLargerSideSays) {
  EXPECT_EQ(operations_of(kernel("aten::matmul", {{2, 3, 5}, {5, 7}}, {30, 35}, {42})), 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::matmul", {{3, 5}, {2, 5, 7}}, {15, 70}, {42})), 2 * 2 * 3 * 5 * 7);
}

// ResNet's first: 64 filters of 3 x 7 x 7 over 112 x 112 places, two images.
TEST(Operations, AConvolutionSumsOverItsWindowForEachElementThatItMakes) {
  const std::vector<Sizes> shapes{{2, 3, 224, 224}, {64, 3, 7, 7}};
  const std::uint64_t in = 2 * 3 * 224 * 224, weight = 64 * 3 * 7 * 7, out = 2 * 64 * 112 * 112;
  EXPECT_EQ(operations_of(kernel("aten::conv2d", shapes, {in, weight}, {out})), 2.0 * 147 * out);
  const std::vector<Sizes> backward{{2, 64, 112, 112}, {2, 3, 224, 224}, {64, 3, 7, 7}};
  EXPECT_EQ(operations_of(kernel("aten::convolution_backward", backward, {out, in, weight}, {weight})),
            2.0 * 147 * out);
  EXPECT_EQ(operations_of(kernel("aten::convolution_backward", backward, {out, in, weight}, {in, weight, 64})),
            2 * 2.0 * 147 * out);
}

// Depthwise: each of 32 channels has a window of 3 x 3 of its own.
TEST(Operations, AGroupOfAConvolutionSumsOverItsOwnChannelsOnly) {
  EXPECT_EQ(operations_of(kernel("aten::conv2d.padding", {{1, 32, 8, 8}, {32, 1, 3, 3}}, {2048, 288}, {2048})),
            2 * 9 * 2048);
}

// Each element of the input meets the whole window of each output channel: [in, out, window].
TEST(Operations, ATransposedConvolutionScattersEachElementThatItReads) {
  EXPECT_EQ(operations_of(kernel("aten::conv_transpose2d.input", {{1, 8, 4, 4}, {8, 16, 2, 2}}, {128, 512}, {1024})),
            2 * 128 * 16 * 4);
}

TEST(Operations, AttentionIsTwoProductsAndFiveBackward) {
  const Sizes query{2, 4, 10, 16}, key{2, 4, 20, 16}, value{2, 4, 20, 8};
  const double once = 2 * 2 * 4 * 10 * 20 * 16, other = 2 * 2 * 4 * 10 * 20 * 8;
  EXPECT_EQ(operations_of(kernel("aten::scaled_dot_product_attention", {query, key, value}, {1, 1, 1}, {1})),
            once + other);
  EXPECT_EQ(operations_of(kernel("aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                                 {{2, 4, 10, 8}, query, key, value}, {1, 1, 1, 1}, {1})),
            2.5 * (once + other));
}

// 6 steps of 3 sequences, 5 values in, 4 states, 4 gates.
TEST(Operations, ARecurrentNetworkMeetsItsWeightsAtEachStep) {
  EXPECT_EQ(operations_of(kernel("aten::lstm.input", {{6, 3, 5}, {1, 3, 4}, {1, 3, 4}, {16, 5}, {16, 4}, {16}, {16}},
                                 {90, 12, 12, 80, 64, 16, 16}, {72})),
            2 * 6 * 3 * (16 * 5 + 16 * 4));
}

TEST(Operations, OthersTakeOneForEachElement) {
  EXPECT_EQ(operations_of(kernel("aten::relu", {{10}}, {10}, {10})), 20);
  EXPECT_EQ(operations_of(kernel("some kernel of no shapes", {}, {10, 5}, {10})), 25);
  EXPECT_EQ(operations_of(kernel("aten::mm", {}, {15, 35}, {21})), 71);  // no shapes
  Kernel half = kernel("aten::relu", {{20}}, {10}, {10});                // two bytes each
  EXPECT_EQ(operations_of(half), 40);
  half.flops = 7;  // the trace knows
  EXPECT_EQ(operations_of(half), 7);
}

TEST(Operations, NamesTellTheClass) {
  EXPECT_EQ(operator_class_of("aten::conv2d"), OperatorClass::convolution);
  EXPECT_EQ(operator_class_of("aten::convolution_backward"), OperatorClass::convolution);
  EXPECT_EQ(operator_class_of("aten::addmm"), OperatorClass::product);
  EXPECT_EQ(operator_class_of("aten::add_.Tensor"), OperatorClass::elementwise);
  EXPECT_EQ(operator_class_of("aten::addcmul_"), OperatorClass::elementwise);
  EXPECT_EQ(operator_class_of("aten::native_layer_norm_backward"), OperatorClass::normalization);
  EXPECT_EQ(operator_class_of("aten::_softmax_backward_data"), OperatorClass::normalization);
  EXPECT_EQ(operator_class_of("aten::lstm.input"), OperatorClass::recurrent);
  EXPECT_EQ(operator_class_of(""), OperatorClass::elementwise);
}

}  // namespace
}  // namespace spillway
