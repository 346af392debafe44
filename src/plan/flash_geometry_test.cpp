#include "plan/flash_geometry.h"

#include <gtest/gtest.h>

#include "plan/machine_file.h"

namespace spillway {
namespace {

MachineModel with_flash() { return *load_machine("a100-flash"); }

std::string refusal(std::initializer_list<std::string_view> changes) {
  MachineModel machine = with_flash();
  for (const std::string_view change : changes) EXPECT_TRUE(apply_override(machine, change)) << change;
  const auto fits = check_machine(machine);
  return fits ? "" : fits.error().message;
}

TEST(FlashGeometry, ASuperblockIsOneFlashBlockOfEveryPlane) {
  const auto geometry = flash_geometry(with_flash());
  ASSERT_TRUE(geometry) << geometry.error().message;
  EXPECT_EQ(geometry->pages, 16u * 4 * 2 * 256);
  EXPECT_EQ(geometry->superblocks, 30517u);  // 3.2 TB x 1.28 / 128 MiB = 30517.58
  EXPECT_EQ(geometry->most_pages(), 30515u * std::uint64_t{32768});
}

// Reading: 128 planes give 4 KiB every 3 us, 174.8 GB/s, but 16 channels carry 19.2. Writing: 128 x 4 KiB / 100 us.
TEST(FlashGeometry, RatesAreThoseOfTheChannelsOrOfThePlanes) {
  const auto geometry = flash_geometry(with_flash());
  ASSERT_TRUE(geometry);
  EXPECT_DOUBLE_EQ(geometry->read_rate, 19.2e9);
  EXPECT_DOUBLE_EQ(geometry->program_rate, 5.24288e9);
}

TEST(FlashGeometry, EachOfSeveralDevicesHasItsPart) {
  MachineModel machine = with_flash();
  ASSERT_TRUE(apply_override(machine, "device.count=2"));
  const auto geometry = flash_geometry(machine);
  ASSERT_TRUE(geometry);
  EXPECT_EQ(geometry->pages, 32768u);
  EXPECT_EQ(geometry->superblocks, 15258u);
  EXPECT_DOUBLE_EQ(geometry->read_rate, 9.6e9);
  EXPECT_DOUBLE_EQ(geometry->program_rate, 2.62144e9);
  EXPECT_EQ(geometry->erase_time, Nanos{2'000'000});
}

TEST(FlashGeometry, DrivesInParallelAreOneOfSoManyTimesTheChannels) {
  MachineModel machine = with_flash();
  ASSERT_TRUE(apply_override(machine, "ssd.count=4"));
  const auto geometry = flash_geometry(machine);
  ASSERT_TRUE(geometry);
  EXPECT_EQ(geometry->superblocks, 30517u);
  EXPECT_EQ(geometry->pages, 4u * 32768);
  EXPECT_DOUBLE_EQ(geometry->program_rate, 4 * 5.24288e9);
}

// G10 section 7.7: 30 DWPD x 1825 days x 3.2 TB / (3 GB/s, half of it writes) = 3.7 years.
TEST(FlashGeometry, ItEnduresWhatG10Says) { EXPECT_NEAR(years_at(with_flash(), 1.5e9), 3.70, 0.005); }

TEST(FlashGeometry, FlashThatCannotHoldTheCapacityIsRefused) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({"ssd.capacity=0"}), "") << "there is no SSD";
  EXPECT_TRUE(refusal({"flash.over_provisioning=0%"}).starts_with("flash.over_provisioning: with 0 % there are"));
  EXPECT_TRUE(refusal({"ssd.capacity=200MB"}).starts_with("flash.over_provisioning"));
  EXPECT_EQ(refusal({"ssd.capacity=200MB", "flash.channels=1"}), "");
  EXPECT_TRUE(refusal({"flash.page=5KiB"}).starts_with("flash.page: 5120 B is not a power of two"));
  EXPECT_TRUE(
      refusal({"flash.pages=65536", "flash.channels=256", "ssd.count=16"}).starts_with("flash.pages: a superblock"));
  EXPECT_TRUE(refusal({"flash.pages=1", "flash.channels=1"}).contains("are more than 16777216"));
}

}  // namespace
}  // namespace spillway
