#include "plan/flash_geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/text.h"

namespace spillway {
namespace {

constexpr std::uint64_t kMostSuperblocks = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostPages = std::uint64_t{1} << 30;  // of a superblock

}  // namespace

Result<FlashGeometry> flash_geometry(const MachineModel& machine) {
  CHECK(machine.flash && machine.ssd_capacity() > Bytes{});
  const FlashModel& flash = *machine.flash;
  if (!std::has_single_bit(flash.page.value))
    return fail(Errc::bad_input,
                fmt::format("flash.page: {} B is not a power of two; write it like 4KiB", flash.page.value));
  const std::uint64_t channels = flash.channels * machine.ssd.count;
  const std::uint64_t planes = channels * flash.dies * flash.planes;
  const std::uint64_t pages = planes * flash.pages;
  const Bytes superblock = flash.page * pages;
  if (pages > kMostPages)
    return fail(Errc::bad_input,
                fmt::format("flash.pages: a superblock, which is a flash block of every plane, would have {}; give it "
                            "fewer pages, planes, dies or channels",
                            to_text(superblock)));
  // Exact: a capacity has 50 bits, drives 10, percents 11.
  // Each of several devices has its part of the superblocks and of the flash's time.
  const auto all = static_cast<unsigned __int128>(machine.ssd_capacity().value) * (100 + flash.over_provisioning) / 100;
  const double devices = static_cast<double>(machine.device.count);
  const auto superblocks = static_cast<std::uint64_t>(all / superblock.value);
  if (superblocks > kMostSuperblocks)
    return fail(Errc::bad_input,
                fmt::format("flash.pages: {} superblocks of {} are more than {}; give a superblock more pages, planes, "
                            "dies or channels",
                            superblocks, to_text(superblock), kMostSuperblocks));
  const std::uint64_t wanted = (machine.ssd_capacity().value + flash.page.value - 1) / flash.page.value;
  if (superblocks <= flash.reserve || (superblocks - flash.reserve) * pages < wanted)
    return fail(
        Errc::bad_input,
        fmt::format("flash.over_provisioning: with {} % there are {} superblocks of {}, and without the {} of "
                    "flash.reserve they hold less than ssd.capacity ({}); raise it, or give a superblock fewer pages, "
                    "planes, dies or channels",
                    flash.over_provisioning, superblocks, to_text(superblock), flash.reserve,
                    to_text(machine.ssd_capacity())));
  const auto rate = [&](Nanos of_a_page) {
    const double of_channels = static_cast<double>(channels) * static_cast<double>(flash.channel_rate.value) / devices;
    if (of_a_page == Nanos{}) return of_channels;
    return std::min(of_channels, static_cast<double>((flash.page * planes).value) / seconds(of_a_page) / devices);
  };
  return FlashGeometry{.superblocks = static_cast<std::uint32_t>(superblocks),
                       .pages = static_cast<std::uint32_t>(pages),
                       .reserve = static_cast<std::uint32_t>(flash.reserve),
                       .page = flash.page,
                       .read_rate = rate(flash.read_time),
                       .program_rate = rate(flash.program_time),
                       .erase_time = flash.erase_time * machine.device.count};
}

double years_at(const MachineModel& machine, double bytes_per_second) {
  CHECK(machine.flash);
  constexpr double kDays = 1825, kSecondsInYear = 31.536e6;
  const double endured =
      static_cast<double>(machine.flash->dwpd) * kDays * static_cast<double>(machine.ssd_capacity().value);
  return endured / bytes_per_second / kSecondsInYear;
}

}  // namespace spillway
