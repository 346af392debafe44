#include "hook/pager/pager_config.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace spillway {
namespace {

constexpr std::uint32_t kBlocksForAThread = 16;

std::uint32_t threads_that_can_run() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&allowed));
  return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

Bytes memory_of_this_machine() {
  return {static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
}

}  // namespace

Bytes Pager::least_budget() { return kBlockBytes * kBlocksForAThread * threads_that_can_run(); }

Result<PagerSize> size_of(const PagerConfig& config) {
  const Bytes memory = memory_of_this_machine();
  if (config.check_least_budget && config.device < Pager::least_budget())
    return fail(Errc::usage,
                fmt::format("a device memory of {} is too small: each of {} threads needs {}, {} in all; give "
                            "at least that with --device-memory, or use fewer threads (taskset)",
                            to_text(config.device), threads_that_can_run(), to_text(kBlockBytes * kBlocksForAThread),
                            to_text(Pager::least_budget())));
  if (config.device > memory || config.host > memory - config.device)
    return fail(Errc::usage,
                fmt::format("device memory of {} and host memory of {} are more than the {} of this machine; "
                            "ask for less with --device-memory or --host-memory",
                            to_text(config.device), to_text(config.host), to_text(memory)));
  return PagerSize{static_cast<std::uint32_t>(config.device.value / kBlockBytes.value),
                   static_cast<std::uint32_t>(config.host.value / kBlockBytes.value)};
}

std::uint32_t range_blocks(PagerSize size, std::uint32_t ssd_slots) {
  const std::uint64_t all = std::uint64_t{size.device_frames} + size.host_frames + ssd_slots;
  // A table entry for each: beyond 16 times the machine's memory there is nothing to win.
  const std::uint64_t most = 16 * memory_of_this_machine().value / kBlockBytes.value;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(2 * all, 64, std::max<std::uint64_t>(most, 64)));
}

}  // namespace spillway
