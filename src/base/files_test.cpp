#include "base/files.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace spillway {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = testing::TempDir() + "spillway-files-" + std::to_string(::getpid());
};

TEST_F(Files, WhatWasWrittenIsRead) {
  const std::string content = "a\0b\n" + std::string(3 << 20, 'x');
  ASSERT_TRUE(write_file(folder_ + "/f", content));
  EXPECT_EQ(read_file(folder_ + "/f", 8_MiB), content);
}

TEST_F(Files, AFileOverTheLimitIsRefused) {
  ASSERT_TRUE(write_file(folder_ + "/f", std::string(100, 'x')));
  EXPECT_FALSE(read_file(folder_ + "/f", Bytes{99}));
}

TEST_F(Files, AFailedWriteLeavesNothingBehind) {
  EXPECT_FALSE(write_file(folder_ + "/none/f", "x"));
  EXPECT_FALSE(write_file(folder_, "x"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace spillway
