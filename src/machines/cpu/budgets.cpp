#include "machines/cpu/budgets.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "machines/cpu/usable_memory.h"
#include "memory/tier.h"

namespace spillway {
namespace {

constexpr std::uint64_t kBlocksForACpu = 16;

}  // namespace

Bytes least_device_budget() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  long count = 0;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) == 0) count = CPU_COUNT(&cpus);
  if (count <= 0) count = ::sysconf(_SC_NPROCESSORS_ONLN);  // more CPUs than the set has room for
  return kBlockBytes * kBlocksForACpu * static_cast<std::uint64_t>(std::max(count, 1L));
}

Result<FrameCounts> frames_for(Bytes device, Bytes host, bool check_least) {
  const Bytes least = least_device_budget();
  if (check_least && device < least)
    return fail(
        Errc::usage,
        fmt::format("device memory of {} is too little: the least is {}, {} blocks of {} for each of the {} CPUs "
                    "that the script may use; give more (--device-memory), or fewer CPUs (taskset -c 0)",
                    to_text(device), to_text(least), kBlocksForACpu, to_text(kBlockBytes),
                    least.value / (kBlockBytes * kBlocksForACpu).value));
  TRY(const Bytes memory, usable_memory());
  if (device > memory)
    return fail(Errc::usage, fmt::format("--device-memory {} is more than the {} of memory that there is here; the "
                                         "device is a part of it, so give less",
                                         to_text(device), to_text(memory)));
  if (host > memory - device)
    return fail(Errc::usage, fmt::format("--host-memory {} and --device-memory {} together are more than the {} of "
                                         "memory that there is here; give less of either",
                                         to_text(host), to_text(device), to_text(memory)));
  return FrameCounts{static_cast<std::uint32_t>(device.value / kBlockBytes.value),
                     static_cast<std::uint32_t>(host.value / kBlockBytes.value)};
}

std::uint32_t range_blocks(FrameCounts frames, std::uint32_t ssd_slots) {
  const std::uint64_t all = std::uint64_t{frames.device} + frames.host + ssd_slots;
  // A table entry for each: beyond 16 times the machine's memory there is nothing to win. What is set apart for plans
  // serves nothing else, which may be much of what small tiers would have.
  const std::uint64_t memory =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t most = std::max<std::uint64_t>(16 * memory / kBlockBytes.value, 64);
  const std::uint64_t wanted = std::max(2 * all, std::min(4 * all, 4 * memory / kBlockBytes.value));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 64, most));
}

}  // namespace spillway
