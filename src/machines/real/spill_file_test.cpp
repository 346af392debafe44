#include "machines/real/spill_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "memory/tier.h"

namespace spillway {
namespace {

// Tests spill to a real disk.
const std::string kDirectory =
    std::getenv("SPILLWAY_TEST_SSD") != nullptr ? std::getenv("SPILLWAY_TEST_SSD") : "/var/tmp";

std::string refusal(const std::string& directory, Bytes capacity = {}) {
  const auto file = SpillFile::open(directory, capacity);
  return file ? "opened" : file.error().message;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(SpillFile, IsPrivateAndHasNoName) {
  std::string folder = std::string(kDirectory) + "/spillway-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto file = SpillFile::open(folder, 64_MiB);
  EXPECT_EQ(::rmdir(folder.c_str()), 0) << "something is in it";
  ASSERT_TRUE(file) << file.error().message;
  struct stat status{};
  ASSERT_EQ(::fstat(file->fd(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_nlink, 0u);
}

TEST(SpillFile, PromisesOnlySpaceThatItHas) {
  auto file = SpillFile::open(kDirectory, 64_MiB);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->capacity_slots(), 32u);
  EXPECT_EQ(file->take(), std::nullopt);
  ASSERT_TRUE(file->reserve(3));
  struct stat status{};
  ASSERT_EQ(::fstat(file->fd(), &status), 0);
  EXPECT_GE(Bytes{static_cast<std::uint64_t>(status.st_blocks) * 512}, kBlockBytes * 3);
  std::set<std::uint32_t> slots;
  while (const auto slot = file->take()) slots.insert(*slot);
  EXPECT_EQ(slots.size(), file->reserved_slots());
  EXPECT_LT(*slots.rbegin(), 32u);
  file->give_back(2);
  EXPECT_EQ(file->take(), 2u);
}

TEST(SpillFile, MoreThanItsCapacityIsRefusedWithTheNumbers) {
  auto file = SpillFile::open(kDirectory, 64_MiB);
  ASSERT_TRUE(file);
  const auto refused = file->reserve(33);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::out_of_memory);
  EXPECT_TRUE(says(refused.error().message, "66 MiB") && says(refused.error().message, "64 MiB"))
      << refused.error().message;
  EXPECT_TRUE(file->reserve(32));
}

TEST(SpillFile, ALimitOnFileSizesIsAnErrorNotASignal) {
  auto file = SpillFile::open(kDirectory, 64_MiB);
  ASSERT_TRUE(file);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit low{4 << 20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &low);
  const bool two = file->reserve(2).has_value();
  const bool three = file->reserve(3).has_value();
  const std::string text = refusal(kDirectory, 64_MiB);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(two);
  EXPECT_FALSE(three);
  EXPECT_TRUE(says(text, "ulimit -f")) << text;
}

TEST(SpillFile, WhatWouldBeNiceToHaveIsNotAskedForAgainOnceItCouldNotBeHad) {
  auto file = SpillFile::open(kDirectory, 1024_MiB);
  ASSERT_TRUE(file && file->reserve(1));
  file->reserve_if_plenty(2);
  const std::uint32_t had = file->reserved_slots();
  EXPECT_GE(had, 2u);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit low{(kBlockBytes * had).value, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &low);
  file->reserve_if_plenty(had + 1);
  ::setrlimit(RLIMIT_FSIZE, &before);
  file->reserve_if_plenty(had + 1);
  EXPECT_EQ(file->reserved_slots(), had);
  EXPECT_TRUE(file->reserve(had + 1));  // Who needs it asks.
}

TEST(SpillFile, ADirectoryThatIsMissingOrNoneOrInMemoryIsRefusedWithTheReason) {
  EXPECT_TRUE(says(refusal("/nonexistent/spill"), "/nonexistent/spill: No such file")) << refusal("/nonexistent/spill");
  EXPECT_TRUE(says(refusal("/etc/passwd"), "not a directory"));
  EXPECT_TRUE(says(refusal("/dev/shm"), "tmpfs")) << refusal("/dev/shm");
  EXPECT_TRUE(says(refusal(kDirectory, {UINT64_MAX / 2}), "free")) << refusal(kDirectory, {UINT64_MAX / 2});
  EXPECT_TRUE(says(refusal("/proc"), "cannot spill to /proc")) << refusal("/proc");
}

TEST(SpillFile, AReadOnlyDirectoryIsRefusedWithTheReason) {
  std::string directory = kDirectory + "/spillway-test-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  if (::geteuid() == 0) {
    const bool mounted = ::mount(directory.c_str(), directory.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
                         ::mount(nullptr, directory.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
    const std::string text = refusal(directory);
    ::umount(directory.c_str());
    ::rmdir(directory.c_str());
    if (!mounted) GTEST_SKIP() << "no right to mount here";
    EXPECT_TRUE(says(text, "Read-only")) << text;
  } else {
    ::chmod(directory.c_str(), 0500);
    const std::string text = refusal(directory);
    ::rmdir(directory.c_str());
    EXPECT_TRUE(says(text, "Permission denied")) << text;
  }
}

}  // namespace
}  // namespace spillway
