#include "hook/session/budget.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/text.h"
#include "memory/tier.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// The number in a control group's file; nothing if there is no such file or it says "max".
std::optional<Bytes> limit_in(const fs::path& file) {
  const auto text = read_file(file.string(), 4_KiB);
  if (!text) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{}) return std::nullopt;
  return Bytes{value};
}

// The group that holds this process, relative to its hierarchy's root: "0::/user.slice" in version 2, or
// "5:memory:/docker/1" in version 1.
std::string own_group(std::string_view controllers) {
  const auto text = read_file("/proc/self/cgroup", 1_MiB);
  if (!text) return "/";
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const std::string_view line = std::string_view(*text).substr(begin, end - begin);
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second != std::string_view::npos && line.substr(first + 1, second - first - 1) == controllers)
      return std::string(line.substr(second + 1));
    begin = end + 1;
  }
  return "/";
}

// The least limit of the group and of all that contain it. Inside a container the path is that of the host, and its
// own group is the root: that is looked at in any case.
std::optional<Bytes> group_limit(const fs::path& root, std::string_view controllers, const char* file) {
  std::optional<Bytes> least = limit_in(root / file);
  for (fs::path group = fs::path(own_group(controllers)).relative_path(); !group.empty(); group = group.parent_path())
    if (const auto limit = limit_in(root / group / file); limit && (!least || *limit < *least)) least = limit;
  return least;
}

}  // namespace

Result<Bytes> usable_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return fail(Errc::unavailable, "cannot tell how much memory this machine has");
  Bytes least{static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)};
  for (const auto& limit : {group_limit("/sys/fs/cgroup", "", "memory.max"),
                            group_limit("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes")})
    if (limit && *limit < least) least = *limit;
  return least;
}

Bytes least_device_budget() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  int count = 0;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) == 0) count = CPU_COUNT(&cpus);
  if (count <= 0) count = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));  // more CPUs than the set has room for
  return kBlockBytes * 16 * static_cast<std::uint64_t>(count > 0 ? count : 1);
}

Result<> check_budgets(Bytes device, Bytes host) {
  const Bytes least = least_device_budget();
  if (device < least)
    return fail(
        Errc::usage,
        fmt::format("--device-memory {} is too little: the least is {}, 16 blocks of {} for each of the {} CPUs "
                    "that the script may use; give more, or fewer CPUs (taskset -c 0)",
                    to_text(device), to_text(least), to_text(kBlockBytes), least.value / (kBlockBytes * 16).value));
  TRY(const Bytes memory, usable_memory());
  if (device > memory)
    return fail(Errc::usage, fmt::format("--device-memory {} is more than the {} of memory that there is here; the "
                                         "device is a part of it, so give less",
                                         to_text(device), to_text(memory)));
  if (host > memory - device)
    return fail(Errc::usage, fmt::format("--host-memory {} and --device-memory {} together are more than the {} of "
                                         "memory that there is here; give less of either",
                                         to_text(host), to_text(device), to_text(memory)));
  return {};
}

}  // namespace spillway
