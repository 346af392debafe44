#include "roofline/operations.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway {
namespace {

Access of(std::uint32_t tensor, std::uint64_t floats) { return {.tensor = {tensor}, .end = Bytes{4 * floats}}; }

Kernel kernel(std::string name, std::vector<Sizes> shapes, const std::vector<std::uint64_t>& reads,
              const std::vector<std::uint64_t>& writes) {
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

TEST(Operations, ABroadcastProductTakesAsManyAsItsBatchesBecome) {
  EXPECT_EQ(operations_of(kernel("aten::matmul", {{2, 3, 5}, {5, 7}}, {30, 35}, {42})), 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::matmul", {{3, 5}, {2, 5, 7}}, {15, 70}, {42})), 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::matmul", {{16, 1, 3, 5}, {1, 8, 5, 7}}, {240, 280}, {16 * 8 * 21})),
            2 * 16 * 8 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::matmul", {{5}, {2, 5, 7}}, {5, 70}, {14})), 2 * 2 * 5 * 7);
}

TEST(Operations, AProductByAnotherNameIsOne) {
  EXPECT_EQ(operations_of(kernel("aten::_addmm_activation", {{7}, {3, 5}, {5, 7}}, {7, 15, 35}, {21})), 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::vdot", {{5}, {5}}, {5, 5}, {1})), 2 * 5);
  EXPECT_EQ(operations_of(kernel("aten::_scaled_mm", {{3, 5}, {5, 7}, {1}, {1}}, {15, 35, 1, 1}, {21})), 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::einsum", {{2, 3, 5}, {5, 7}}, {30, 35}, {42})), 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::tensordot", {{3, 4, 5}, {4, 5, 7}}, {60, 140}, {21})), 2 * 3 * 4 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::inner", {{2, 3, 5}, {7, 5}}, {30, 35}, {42})), 2 * 2 * 3 * 5 * 7);
}

// Rows in groups, each with a matrix of its own; then what is summed over; then whole products.
TEST(Operations, AGroupedProductMeetsItsOwnGroupOnly) {
  EXPECT_EQ(operations_of(kernel("aten::_grouped_mm", {{12, 5}, {4, 5, 7}, {4}}, {60, 140, 4}, {84})), 2 * 12 * 5 * 7);
  EXPECT_EQ(operations_of(kernel("aten::_grouped_mm", {{3, 20}, {20, 7}, {4}}, {60, 140, 4}, {84})), 2 * 3 * 20 * 7);
  EXPECT_EQ(operations_of(kernel("aten::_grouped_mm", {{4, 3, 5}, {4, 5, 7}}, {60, 140}, {84})), 2 * 4 * 3 * 5 * 7);
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

// A generator's first: one place of 100 channels becomes 4 x 4 places of 512. Then one that doubles 64 channels' sides,
// and one as large that is ordinary.
TEST(Operations, EachGradientOfATransposedConvolutionTakesAsManyAsItself) {
  const std::uint64_t out = 64 * 512 * 16, in = 64 * 100, weight = 100 * 512 * 16;
  const std::vector<Sizes> first{{64, 512, 4, 4}, {64, 100, 1, 1}, {100, 512, 4, 4}};
  EXPECT_EQ(operations_of(kernel("aten::convolution_backward", first, {out, in, weight}, {in, weight})),
            2 * 2.0 * in * 512 * 16);
  const std::vector<Sizes> doubles{{2, 64, 8, 8}, {2, 64, 4, 4}, {64, 64, 2, 2}};
  EXPECT_EQ(operations_of(kernel("aten::convolution_backward", doubles, {8192, 2048, 16384}, {2048, 16384})),
            2 * 2.0 * 2048 * 64 * 4);
  const std::vector<Sizes> halves{{2, 64, 4, 4}, {2, 64, 8, 8}, {64, 64, 2, 2}};
  EXPECT_EQ(operations_of(kernel("aten::convolution_backward", halves, {2048, 8192, 16384}, {8192, 16384})),
            2 * 2.0 * 2048 * 64 * 4);
}

// Two bytes each; the input is a view with gaps, the gradient one number for all.
TEST(Operations, OfAConvolutionTheWeightTellsTheElementsSize) {
  EXPECT_EQ(operations_of(kernel("aten::conv2d", {{1, 32, 8, 8}, {32, 32, 3, 3}}, {1500, 4608}, {1024})),
            2.0 * 32 * 9 * 2048);
  EXPECT_EQ(operations_of(kernel("aten::convolution_backward", {{1, 32, 8, 8}, {1, 32, 8, 8}, {32, 32, 3, 3}},
                                 {1, 1024, 4608}, {1024, 4608})),
            2 * 2.0 * 32 * 9 * 2048);
}

// 1,000 rows of which 6 are looked up; then added to, where they are read and written.
TEST(Operations, OfRowsThatNobodyKnowsAsManyCountAsComeOut) {
  Kernel lookup = kernel("aten::embedding", {{1000, 8}, {6}}, {8000, 12}, {48});
  lookup.reads[0].sparse = true;
  EXPECT_EQ(bytes_touched(lookup), 4 * (12 + 48 + 48));
  EXPECT_EQ(operations_of(lookup), 12 + 48 + 48);
  Kernel add = kernel("aten::index_add_", {{1000, 8}, {6}, {6, 8}}, {8000, 12, 48}, {8000});
  add.reads[0].sparse = add.writes[0].sparse = true;
  EXPECT_EQ(bytes_touched(add), 4 * (12 + 48 + 48));
  Kernel few = kernel("aten::take", {{10}, {100}}, {10, 200}, {100});
  few.reads[0].sparse = true;
  EXPECT_EQ(bytes_touched(few), 4 * (10 + 200 + 100));
  Kernel alone = kernel("rows", {}, {8000}, {});
  alone.reads[0].sparse = true;
  EXPECT_EQ(bytes_touched(alone), 4 * 8000);
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
  EXPECT_EQ(operator_class_of("aten::einsum"), OperatorClass::product);
  EXPECT_EQ(operator_class_of("aten::addcmul_"), OperatorClass::elementwise);
  EXPECT_EQ(operator_class_of("aten::native_layer_norm_backward"), OperatorClass::normalization);
  EXPECT_EQ(operator_class_of("aten::_softmax_backward_data"), OperatorClass::normalization);
  EXPECT_EQ(operator_class_of("aten::lstm.input"), OperatorClass::recurrent);
  EXPECT_EQ(operator_class_of(""), OperatorClass::elementwise);
}

}  // namespace
}  // namespace spillway
