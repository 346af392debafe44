#include "base/text.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

TEST(Text, SizesAreReadInIecAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("8GiB"), 8_GiB);
  EXPECT_EQ(parse_bytes(" 1.5 MiB "), Bytes{3 << 19});
  EXPECT_EQ(parse_bytes("2MB"), Bytes{2'000'000});
  EXPECT_EQ(parse_bytes("4096"), Bytes{4096});
}

TEST(Text, WhatIsNotASizeIsRefusedWithTheTextAndAnExample) {
  for (const char* text :
       {"", "apples", "12 apples", "-1GiB", "nan", "inf", "1e3", "99999999999999999999", "1GiB GiB"}) {
    const auto size = parse_bytes(text);
    ASSERT_FALSE(size) << text;
    EXPECT_TRUE(size.error().message.contains("8GiB")) << size.error().message;
  }
}

TEST(Text, SizesArePrintedInTheLargestUnitThatFits) {
  EXPECT_EQ(to_text(Bytes{0}), "0 B");
  EXPECT_EQ(to_text(1536_MiB), "1.5 GiB");
  EXPECT_EQ(to_text(Bytes{1023}), "1023 B");
}

TEST(Text, RatesAndDurationsKeepTheirUnits) {
  EXPECT_EQ(parse_rate("3.2GB/s"), BytesPerSecond{3'200'000'000});
  EXPECT_EQ(to_text(BytesPerSecond{15'754'000'000}), "15.75 GB/s");
  EXPECT_EQ(parse_duration("20us"), Nanos{20'000});
  EXPECT_EQ(parse_duration("1.5min"), Nanos{90'000'000'000});
  EXPECT_EQ(parse_duration("1h"), Nanos{3'600'000'000'000});
  EXPECT_FALSE(parse_duration("20"));
  EXPECT_EQ(to_text(Nanos{90'000'000'000}), "90 s");
  EXPECT_EQ(to_text(Nanos{1'500'000}), "1.5 ms");
}

TEST(Text, PercentsAreWholeAndHaveTheirSign) {
  EXPECT_EQ(parse_percent("28%"), 28u);
  EXPECT_EQ(parse_percent(" 0 % "), 0u);
  for (const char* text : {"", "%", "28", "28%%", "2.5%", "-1%", "99999999999999999999%", "1 2%"}) {
    const auto percent = parse_percent(text);
    ASSERT_FALSE(percent) << text;
    EXPECT_TRUE(percent.error().message.contains("28%")) << percent.error().message;
  }
}

TEST(NestsDeeper, CountsWhatIsOpenOutsideOfTexts) {
  EXPECT_FALSE(nests_deeper("[{}, [], {}]", 2));
  EXPECT_TRUE(nests_deeper("[{}, [{}]]", 2));
  EXPECT_FALSE(nests_deeper(R"(["[[[", "\"[[["])", 1));
  EXPECT_TRUE(nests_deeper(std::string(100'000, '['), 99'999));
  EXPECT_FALSE(nests_deeper("", 0));
}

TEST(Text, LinesAreTakenOneByOne) {
  std::string_view rest = "a\r\n\nb\rc";
  EXPECT_EQ(take_line(rest), "a");
  EXPECT_EQ(take_line(rest), "");
  EXPECT_EQ(rest, "b\rc");
  EXPECT_EQ(take_line(rest), "b\rc") << "the end needs no line feed";
  EXPECT_TRUE(rest.empty());
}

}  // namespace
}  // namespace spillway
