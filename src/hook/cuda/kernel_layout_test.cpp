#include "hook/cuda/kernel_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace spillway {
namespace {

struct Seen {
  std::vector<std::uint64_t> words;
  bool is_complete = false;
};

Seen seen(const KernelLayout& layout, const KernelArguments& arguments) {
  Seen seen;
  seen.is_complete = for_each_word(layout, arguments, [&](std::uint64_t word) { seen.words.push_back(word); });
  return seen;
}

KernelArguments packed(const auto& buffer) { return {.each = nullptr, .packed = std::as_bytes(std::span(buffer))}; }

TEST(KernelLayout, WordsAreThoseAtMultiplesOfEight) {
  std::uint64_t pointer = 11;
  int number = 22;
  struct {
    int count = 33;
    int unused = 0;
    std::uint64_t pointers[2] = {44, 55};
    int tail = 66, end = 0;
  } structure;
  const KernelLayout layout{
      .parameters = {{0, 8}, {8, 4}, {16, sizeof structure}}, .is_known = true, .tensor_lists = {}};
  std::array<void*, 3> each{&pointer, &number, &structure};
  const Seen found = seen(layout, {.each = each.data(), .packed = {}});
  EXPECT_TRUE(found.is_complete);
  EXPECT_EQ(found.words, (std::vector<std::uint64_t>{11, 33, 44, 55, 66}));
}

TEST(KernelLayout, OffsetsCountFromTheBufferOfAllParameters) {
  struct [[gnu::packed]] {  // begins at offset 4, so its pointer stands at 8
    int first = 1;
    std::uint64_t pointer = 77;
  } structure;
  const KernelLayout layout{.parameters = {{4, sizeof structure}}, .is_known = true, .tensor_lists = {}};
  std::array<void*, 1> each{&structure};
  EXPECT_EQ(seen(layout, {.each = each.data(), .packed = {}}).words, std::vector<std::uint64_t>{77});
}

TEST(KernelLayout, APackedBufferIsReadByLayoutOrWhole) {
  const std::array<std::uint64_t, 3> buffer{1, 2, 3};
  const KernelLayout known{.parameters = {{0, 8}, {16, 8}}, .is_known = true, .tensor_lists = {}};
  EXPECT_EQ(seen(known, packed(buffer)).words, (std::vector<std::uint64_t>{1, 3}));
  const Seen unknown = seen({}, packed(buffer));
  EXPECT_TRUE(unknown.is_complete);
  EXPECT_EQ(unknown.words, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(KernelLayout, WhatNobodyKnowsIsNotComplete) {
  std::uint64_t pointer = 11;
  std::array<void*, 1> each{&pointer};
  EXPECT_FALSE(seen({}, {.each = each.data(), .packed = {}}).is_complete) << "no layout";
  EXPECT_FALSE(seen({}, {.each = nullptr, .packed = {}}).is_complete) << "no layout, no arguments";
  const KernelLayout layout{.parameters = {{0, 8}}, .is_known = true, .tensor_lists = {}};
  EXPECT_FALSE(seen(layout, {.each = nullptr, .packed = {}}).is_complete) << "no arguments";
  const std::array<std::uint32_t, 1> small{1};
  EXPECT_FALSE(seen(layout, packed(small)).is_complete) << "a buffer shorter than the parameters";
  const KernelLayout none{.parameters = {}, .is_known = true, .tensor_lists = {}};
  EXPECT_TRUE(seen(none, {.each = nullptr, .packed = {}}).is_complete) << "a kernel without parameters";
}

}  // namespace
}  // namespace spillway
