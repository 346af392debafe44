#include "trace/compressed.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

std::string sample() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 10'007);
  return text;
}

TEST(Compressed, WhatWasCompressedComesBack) {
  for (const std::string& text : {std::string(), std::string("a"), sample()}) {
    const auto packed = compress_zstd(text);
    ASSERT_TRUE(packed);
    EXPECT_TRUE(is_zstd(*packed));
    EXPECT_EQ(decompress_zstd(*packed, 1_MiB, "x"), text);
  }
}

TEST(Compressed, EveryTruncationIsAnError) {
  const auto packed = compress_zstd(sample());
  ASSERT_TRUE(packed);
  for (std::size_t size = 1; size < packed->size(); size += 997)
    EXPECT_FALSE(decompress_zstd(std::string_view(*packed).substr(0, size), 1_MiB, "x")) << size;
}

TEST(Compressed, SeveralFramesAreOneTextAndWhatFollowsThemIsAnError) {
  const auto packed = compress_zstd("abc");
  ASSERT_TRUE(packed);
  EXPECT_EQ(decompress_zstd(*packed + *packed, 1_MiB, "x"), "abcabc");
  EXPECT_FALSE(decompress_zstd(*packed + "tail", 1_MiB, "x"));
}

TEST(Compressed, ASmallFileThatUnfoldsBeyondTheLimitIsRefused) {
  const auto packed = compress_zstd(std::string(8 << 20, 'x'));
  ASSERT_TRUE(packed);
  ASSERT_LT(packed->size(), 10'000u);
  const auto text = decompress_zstd(*packed, 1_MiB, "bomb.trace.zst");
  ASSERT_FALSE(text);
  EXPECT_TRUE(text.error().message.contains("bomb.trace.zst"));
  EXPECT_TRUE(text.error().message.contains("more than 1 MiB"));
  EXPECT_TRUE(decompress_zstd(*packed, 8_MiB, "x"));
}

}  // namespace
}  // namespace spillway
