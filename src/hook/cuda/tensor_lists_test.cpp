#include "hook/cuda/tensor_lists.h"

#include <gtest/gtest.h>

#include <complex>
#include <set>
#include <string>

namespace spillway {
namespace {

// The structures as a compiler lays them out, with the constants of PyTorch for CUDA 12 and 13.
template <int lists, int tensors, int blocks, class Block>
struct Plain {
  const void* addresses[lists][tensors];
  std::int64_t numbers[tensors];
  Block block_to_tensor[blocks];
  int block_to_chunk[blocks];
  int start;
};
template <class Scalar, int lists, int tensors, int blocks, class Block>
struct WithScalars {
  const void* addresses[lists][tensors];
  std::int64_t numbers[tensors];
  Scalar scalars[tensors];
  Block block_to_tensor[blocks];
  int block_to_chunk[blocks];
};
template <int lists, int tensors, int blocks, class Block>
struct Fused {
  const void* addresses[lists][tensors];
  std::int64_t numbers[tensors];
  const void* steps[tensors];
  Block block_to_tensor[blocks];
  int block_to_chunk[blocks];
  int start;
};
struct alignas(16) ComplexDouble {
  double parts[2];
};
struct alignas(8) ComplexFloat {
  float parts[2];
};

std::string kernel_of(const std::string& structure) {
  return "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_" + structure +
         "ENS0_12_GLOBAL__N_114UnaryOpFunctorIfLi1ELi1ELi0EEEJSt8negateIfEEEEvT_T0_DpT1_";
}

template <class Structure>
void expect_layout(const std::string& name, std::size_t lists, bool has_steps = false) {
  SCOPED_TRACE(name);
  const auto found = tensor_lists_of(kernel_of(name), sizeof(Structure));
  ASSERT_TRUE(found.has_value());
  static const Structure kOne{};
  EXPECT_EQ(found->lists, lists);
  EXPECT_EQ(found->tensors, std::size(kOne.numbers));
  EXPECT_EQ(found->blocks, std::size(kOne.block_to_tensor));
  EXPECT_EQ(found->blocks_at, offsetof(Structure, block_to_tensor));
  EXPECT_EQ(found->block_bytes, sizeof(kOne.block_to_tensor[0]));
  if constexpr (requires { kOne.steps; }) {
    EXPECT_EQ(found->steps_at, offsetof(Structure, steps));
  }
  EXPECT_EQ(found->steps_at != 0, has_steps);
}

TEST(TensorLists, LayoutsAreThoseOfTheCompiler) {
  using Byte = unsigned char;
  using Short = std::uint16_t;
  expect_layout<Plain<1, 110, 320, Byte>>("18TensorListMetadataILi1EEE", 1);
  expect_layout<Plain<2, 64, 320, Byte>>("18TensorListMetadataILi2EEE", 2);
  expect_layout<Plain<3, 48, 320, Byte>>("18TensorListMetadataILi3EEE", 3);
  expect_layout<Plain<5, 30, 320, Byte>>("18TensorListMetadataILi5EEE", 5);
  expect_layout<Plain<1, 770, 2240, Short>>("18TensorListMetadataILi1EEE", 1);
  expect_layout<Plain<4, 252, 2240, Short>>("18TensorListMetadataILi4EEE", 4);
  expect_layout<WithScalars<float, 1, 96, 320, Byte>>("28TensorListScalarListMetadataIfLi1EEE", 1);
  expect_layout<WithScalars<double, 1, 96, 320, Byte>>("28TensorListScalarListMetadataIdLi1EEE", 1);
  expect_layout<WithScalars<bool, 2, 64, 320, Byte>>("28TensorListScalarListMetadataIbLi2EEE", 2);
  expect_layout<WithScalars<ComplexFloat, 1, 672, 2240, Short>>(
      "28TensorListScalarListMetadataIN3c107complexIfEELi1EEE", 1);
  expect_layout<WithScalars<ComplexDouble, 1, 72, 320, Byte>>("28TensorListScalarListMetadataIN3c107complexIdEELi1EEE",
                                                              1);
  expect_layout<WithScalars<ComplexDouble, 2, 420, 2240, Short>>(
      "28TensorListScalarListMetadataIN3c107complexIdEELi2EEE", 2);
  expect_layout<WithScalars<ComplexDouble, 3, 48, 320, Byte>>("28TensorListScalarListMetadataIN3c107complexIdEELi3EEE",
                                                              3);
  expect_layout<Fused<4, 36, 320, Byte>>("32FusedOptimizerTensorListMetadataILi4EEE", 4, true);
  expect_layout<Fused<5, 210, 2240, Short>>("32FusedOptimizerTensorListMetadataILi5EEE", 5, true);
}

TEST(TensorLists, OtherKernelsAndOtherSizesAreNotTaken) {
  using Known = Plain<2, 64, 320, unsigned char>;
  const std::string kernel = kernel_of("18TensorListMetadataILi2EEE");
  EXPECT_TRUE(tensor_lists_of(kernel, sizeof(Known)));
  EXPECT_FALSE(tensor_lists_of(kernel, sizeof(Known) + 8));
  EXPECT_FALSE(tensor_lists_of(kernel_of("18TensorListMetadataILi3EEE"), sizeof(Known) + 16));
  EXPECT_FALSE(tensor_lists_of(kernel_of("18TensorListMetadataILi9EEE"), sizeof(Known)));
  EXPECT_FALSE(tensor_lists_of(kernel_of("18TensorListMetadataI"), sizeof(Known)));
  EXPECT_FALSE(tensor_lists_of("_Z3addPfS_18TensorListMetadataILi2EE", sizeof(Known)));
  EXPECT_FALSE(tensor_lists_of("", 0));
}

template <class Structure>
std::multiset<std::uint64_t> tensors_of(const Structure& structure, const TensorLists& layout, std::size_t grid) {
  std::multiset<std::uint64_t> found;
  const auto* bytes = reinterpret_cast<const std::byte*>(&structure);
  EXPECT_TRUE(for_each_tensor(layout, bytes, grid, [&](std::uint64_t address) { found.insert(address); }));
  return found;
}

TEST(TensorLists, OnlyTensorsOfTheBlocksOfThisLaunchCount) {
  using Structure = Fused<4, 36, 320, unsigned char>;
  Structure structure{};
  for (auto& list : structure.addresses)
    for (auto& address : list) address = reinterpret_cast<void*>(0xdead);  // left from launches before
  for (auto& step : structure.steps) step = reinterpret_cast<void*>(0xdead);
  for (auto& block : structure.block_to_tensor) block = 35;
  const auto address = [](std::uint64_t list, std::uint64_t tensor) { return 0x1000 * (list + 1) + tensor; };
  std::multiset<std::uint64_t> expected;
  for (const std::uint64_t tensor : {0, 1}) {
    for (std::uint64_t list = 0; list < 4; ++list) {
      structure.addresses[list][tensor] = reinterpret_cast<void*>(address(list, tensor));
      expected.insert(address(list, tensor));
    }
    structure.steps[tensor] = reinterpret_cast<void*>(0x9000 + tensor);
    expected.insert(0x9000 + tensor);
  }
  structure.block_to_tensor[0] = structure.block_to_tensor[1] = 0;
  structure.block_to_tensor[2] = 1;
  const auto layout = tensor_lists_of(kernel_of("32FusedOptimizerTensorListMetadataILi4EEE"), sizeof structure);
  ASSERT_TRUE(layout);
  EXPECT_EQ(tensors_of(structure, *layout, 3), expected);
  EXPECT_EQ(tensors_of(structure, *layout, 0), std::multiset<std::uint64_t>{});
}

TEST(TensorLists, WhatCannotBeSuchAStructureIsNotRead) {
  using Structure = Plain<2, 448, 2240, std::uint16_t>;
  Structure structure{};
  const auto layout = tensor_lists_of(kernel_of("18TensorListMetadataILi2EEE"), sizeof structure);
  ASSERT_TRUE(layout);
  const auto* bytes = reinterpret_cast<const std::byte*>(&structure);
  const auto never = [](std::uint64_t) { FAIL(); };
  EXPECT_FALSE(for_each_tensor(*layout, bytes, 2241, never)) << "more blocks than there is room for";
  structure.block_to_tensor[1] = 448;
  EXPECT_FALSE(for_each_tensor(*layout, bytes, 2, never)) << "a tensor beyond the lists";
}

}  // namespace
}  // namespace spillway
