#include "session/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

struct OutputFile : testing::Test {
  void SetUp() override {
    std::string name = testing::TempDir() + "output-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string error_of(const std::string& file) {
    const auto result = check_output("--json", file);
    return result ? "none" : result.error().message;
  }
  fs::path folder;
};

TEST_F(OutputFile, AMissingFolderIsFoundBeforeTheRun) {
  const std::string error = error_of((folder / "none/report.json").string());
  EXPECT_TRUE(error.contains("--json")) << error;
  EXPECT_TRUE(error.contains("there is no folder " + (folder / "none").string())) << error;
}

TEST_F(OutputFile, AFolderIsNoFile) {
  EXPECT_TRUE(error_of(folder.string()).contains("it is a folder"));
  EXPECT_TRUE(error_of(folder.string() + "/").contains("it is a folder"));
  EXPECT_TRUE(error_of("").contains("no file"));
  EXPECT_TRUE(error_of("--").contains("no file"));
  EXPECT_TRUE(error_of("--quiet").contains("that is an option"));
}

TEST_F(OutputFile, IsNamedAbsolutelyAndNotMade) {
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  const auto path = check_output("--json", "report.json");
  fs::current_path(before);
  ASSERT_TRUE(path);
  EXPECT_EQ(*path, (folder / "report.json").string());
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(OutputFile, IsTriedWhereALinkPoints) {
  const fs::path link = folder / "report.json";
  fs::create_symlink("/proc/version", link);
  EXPECT_TRUE(error_of(link.string()).contains("cannot write"));
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST_F(OutputFile, ADeviceIsWrittenToAndNotReplaced) {
  const fs::path link = folder / "null";
  fs::create_symlink("/dev/null", link);
  ASSERT_TRUE(check_output("--json", link.string()));
  ASSERT_TRUE(write_file(link.string(), "text"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFile, APipeGetsTheTextIfSomebodyReadsItAndElseAnErrorAtOnce) {
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_TRUE(check_output("--json", pipe));
  const auto unread = write_file(pipe, "text");
  ASSERT_FALSE(unread);
  EXPECT_TRUE(unread.error().message.contains("nobody reads")) << unread.error().message;
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(write_file(pipe, "text"));
  char text[8];
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 4);
}

TEST_F(OutputFile, ARegularFileIsReplaced) {
  const std::string file = (folder / "report.json").string();
  ASSERT_TRUE(write_file(file, "a longer text"));
  ASSERT_TRUE(write_file(file, "text"));
  EXPECT_EQ(read_file(file, 1_KiB).value(), "text");
}

}  // namespace
}  // namespace spillway
