#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>

#include "base/unique_fd.h"

namespace spillway {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = testing::TempDir() + "spillway-files-" + std::to_string(::getpid());
};

TEST_F(Files, WhatWasWrittenIsRead) {
  const std::string content = std::string{'a', '\0', 'b', '\n'} + std::string(3 << 20, 'x');
  ASSERT_TRUE(write_file(folder_ + "/f", content));
  EXPECT_EQ(read_file(folder_ + "/f", 8_MiB), content);
}

TEST_F(Files, AFileWithoutANameIsWrittenThroughItsDescriptor) {
  const int fd = ::memfd_create("spillway-test", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  ASSERT_TRUE(write_file(path, "longer"));
  ASSERT_TRUE(write_file(path, "short"));
  EXPECT_EQ(read_file(path, 1_MiB), "short");
  ::close(fd);
}

// As when a shell has sent our output into a log, and more of it comes.
TEST_F(Files, WhatADescriptorLeadsToIsWrittenOn) {
  const UniqueFd log(::open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::write(log.get(), "before ", 7), 7);
  std::filesystem::create_symlink("/dev/fd/" + std::to_string(log.get()), folder_ + "/link");
  EXPECT_TRUE(try_to_write(folder_ + "/link"));
  ASSERT_TRUE(write_file(folder_ + "/link", "our words "));
  ASSERT_EQ(::write(log.get(), "after", 5), 5);
  EXPECT_EQ(*read_file(folder_ + "/log", 1_MiB), "before our words after");
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

TEST_F(Files, AKilledProcessLeavesNothingBehind) {
  const int nameless = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no files without names";
  ::close(nameless);
  EXPECT_EXIT(
      {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 4096;
        ::setrlimit(RLIMIT_FSIZE, &limit);  // Writing more ends the process.
        static_cast<void>(write_file(folder_ + "/f", std::string(1 << 20, 'x')));
        ::_exit(0);
      },
      testing::KilledBySignal(SIGXFSZ), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Files, ALinkStaysALinkAndADeviceADevice) {
  ASSERT_TRUE(write_file(folder_ + "/f", "old"));
  std::filesystem::create_symlink("f", folder_ + "/link");
  ASSERT_TRUE(write_file(folder_ + "/link", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_EQ(read_file(folder_ + "/f", 1_MiB), "new");
  std::filesystem::create_symlink("/dev/null", folder_ + "/null");
  ASSERT_TRUE(write_file(folder_ + "/null", "gone"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(Files, TellingToWhoReadsNoMoreIsFoundToWait) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_NONBLOCK), 0);
  const UniqueFd reader(pipe[0]), writer(pipe[1]), stderr_before(::dup(STDERR_FILENO));
  ASSERT_GE(::dup2(writer.get(), STDERR_FILENO), 0);
  const bool empty = can_tell();
  const std::string page(4096, 'x');
  while (::write(writer.get(), page.data(), page.size()) > 0) {
  }
  const bool full = can_tell();
  ASSERT_GE(::dup2(stderr_before.get(), STDERR_FILENO), 0);
  EXPECT_TRUE(empty);
  EXPECT_FALSE(full);
}

}  // namespace
}  // namespace spillway
