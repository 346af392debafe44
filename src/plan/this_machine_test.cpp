#include "plan/this_machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
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
  const auto again = measure_this_machine(options, probe());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->not_kept, "");
  EXPECT_EQ(measured_, 3);
}

TEST_F(ThisMachineTest, OneFileHoldsASectionForEachSsdAndTheRestOnce) {
  const ThisMachine one{.ssd_folder = "/one \"[x] \xe2\x82\xac", .cache_folder = folder_};
  const ThisMachine other{.ssd_folder = "/other", .cache_folder = folder_};
  const auto with = [](std::uint64_t read, std::uint64_t copy) {
    return [=](const std::string&) -> Result<MachineModel> {
      MachineModel machine = *load_machine("a100");
      machine.ssd.read = {read};
      machine.link.to_device = {copy};
      return machine;
    };
  };
  ASSERT_TRUE(this_machine(one, with(1'000'000'000, 5'000'000'000)));
  ASSERT_TRUE(this_machine(other, with(2'000'000'000, 6'000'000'000)));
  const auto files = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  EXPECT_EQ(kept_in(one), folder_ / "this.toml");
  const auto first = this_machine(one, probe()), second = this_machine(other, probe());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(measured_, 0);
  EXPECT_EQ(first->ssd.read.value, 1'000'000'000u);
  EXPECT_EQ(second->ssd.read.value, 2'000'000'000u);
  EXPECT_EQ(first->link.to_device.value, 6'000'000'000u) << "measured last";
  const auto text = read_file(kept_in(one), 1_MiB);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->find("[link]"), text->rfind("[link]"));
  EXPECT_TRUE(text->contains("/other")) << *text;
}

TEST_F(ThisMachineTest, ManySsdsAreNotKeptForEver) {
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(this_machine({.ssd_folder = "/ssd" + std::to_string(i), .cache_folder = folder_}, probe()));
  EXPECT_EQ(measured_, 100);
  ASSERT_TRUE(this_machine({.ssd_folder = "/ssd99", .cache_folder = folder_}, probe()));
  EXPECT_EQ(measured_, 100);
}

TEST_F(ThisMachineTest, AFileThatCannotBeReadIsMeasuredAnew) {
  const ThisMachine options{.ssd_folder = "/ssd", .cache_folder = folder_};
  for (const std::string_view text : {"", "[ssd]\nread = 5\n", "ssd = 7", "[ssd.a]\ncolour = 5\n", "[#"}) {
    ASSERT_TRUE(write_file(kept_in(options), text));
    EXPECT_TRUE(this_machine(options, probe())) << text;
  }
  EXPECT_EQ(measured_, 5);
}

TEST_F(ThisMachineTest, IsNoMachineFileSinceItHasSeveralSsds) {
  const ThisMachine options{.ssd_folder = "/ssd", .cache_folder = folder_};
  ASSERT_TRUE(this_machine(options, probe()));
  const auto machine = load_machine(kept_in(options));
  ASSERT_FALSE(machine);
  EXPECT_TRUE(machine.error().message.contains("--machine this --ssd DIR")) << machine.error().message;
}

TEST_F(ThisMachineTest, IsStillMeasuredWhereNothingCanBeKept) {
  EXPECT_TRUE(this_machine({.ssd_folder = "/ssd", .cache_folder = "/dev/null/cache"}, probe()));
  EXPECT_TRUE(this_machine({.ssd_folder = "/ssd", .cache_folder = ""}, probe()));
  EXPECT_EQ(measured_, 2);
  const auto measured = measure_this_machine({.ssd_folder = "/ssd", .cache_folder = "/dev/null/cache"}, probe());
  ASSERT_TRUE(measured);
  EXPECT_TRUE(measured->not_kept.contains("/dev/null/cache")) << measured->not_kept;
}

TEST_F(ThisMachineTest, AFailedOrImpossibleMeasurementIsAnErrorAndNotKept) {
  const ThisMachine options{.ssd_folder = "/ssd", .cache_folder = folder_};
  EXPECT_FALSE(this_machine(options, [](const std::string&) { return Result<MachineModel>(fail(Errc::io, "no")); }));
  EXPECT_FALSE(this_machine(options, [](const std::string&) { return Result<MachineModel>(MachineModel{}); }));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace spillway
