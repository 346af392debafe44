#include "plan/this_machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "plan/machine_file.h"

namespace spillway {
namespace {

class ThisMachineTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "spillway-this-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Probe probe() {
    return [this](const std::string&) -> Result<MachineModel> {
      ++measured_;
      return load_machine("a100");
    };
  }

  std::filesystem::path folder_;
  int measured_ = 0;
};

TEST_F(ThisMachineTest, IsMeasuredOnceForEachFolderAndKept) {
  const ThisMachine options{.ssd_folder = "/ssd", .cache_folder = folder_ / "deep" / "cache"};
  const auto first = this_machine(options, probe());
  const auto second = this_machine(options, probe());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(measured_, 1);
  EXPECT_EQ(second->name, "this");
  EXPECT_EQ(second->hash, first->hash);
  ASSERT_TRUE(this_machine({.ssd_folder = "/other", .cache_folder = options.cache_folder}, probe()));
  EXPECT_EQ(measured_, 2);
  ASSERT_TRUE(this_machine({.ssd_folder = "/ssd", .cache_folder = options.cache_folder, .again = true}, probe()));
  EXPECT_EQ(measured_, 3);
}

TEST_F(ThisMachineTest, IsStillMeasuredWhereNothingCanBeKept) {
  EXPECT_TRUE(this_machine({.ssd_folder = "/ssd", .cache_folder = "/dev/null/cache"}, probe()));
  EXPECT_TRUE(this_machine({.ssd_folder = "/ssd", .cache_folder = ""}, probe()));
  EXPECT_EQ(measured_, 2);
}

TEST_F(ThisMachineTest, AFailedOrImpossibleMeasurementIsAnErrorAndNotKept) {
  const ThisMachine options{.ssd_folder = "/ssd", .cache_folder = folder_};
  EXPECT_FALSE(this_machine(options, [](const std::string&) { return Result<MachineModel>(fail(Errc::io, "no")); }));
  EXPECT_FALSE(this_machine(options, [](const std::string&) { return Result<MachineModel>(MachineModel{}); }));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace spillway
