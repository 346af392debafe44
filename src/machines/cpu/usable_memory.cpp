#include "machines/cpu/usable_memory.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>

#include "base/files.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// Where control groups say what memory may be and is used, in both of their versions, and what the kernel caches of
// files in that, which it gives up for others.
struct Hierarchy {
  const char *root, *controllers, *limit, *used;
  std::array<std::string_view, 2> cached;  // lines of memory.stat
};
constexpr std::array kHierarchies{
    Hierarchy{"/sys/fs/cgroup", "", "memory.max", "memory.current", {"active_file ", "inactive_file "}},
    Hierarchy{"/sys/fs/cgroup/memory",
              "memory",
              "memory.limit_in_bytes",
              "memory.usage_in_bytes",
              {"total_active_file ", "total_inactive_file "}}};

// The number in a control group's file; nothing if there is no such file or it says "max".
std::optional<Bytes> number_in(const fs::path& file) {
  const auto text = read_file(file.string(), 4_KiB);
  if (!text) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{}) return std::nullopt;
  return Bytes{value};
}

// The number in the line of a text that begins so; 0 if there is none.
Bytes number_after(std::string_view begin, std::string_view text) {
  std::uint64_t value = 0;
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    std::from_chars(text.data() + at + begin.size(), text.data() + text.size(), value);
    break;
  }
  return {value};
}

Bytes used_by(const Hierarchy& groups, const fs::path& group) {
  Bytes used = number_in(group / groups.used).value_or(Bytes{});
  if (const auto stat = read_file((group / "memory.stat").string(), 1_MiB))
    for (const std::string_view line : groups.cached) used = excess(used, number_after(line, *stat));
  return used;
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
std::optional<Bytes> group_limit(const Hierarchy& groups, bool less_what_is_used) {
  std::optional<Bytes> least;
  const auto look_at = [&](const fs::path& group) {
    auto limit = number_in(group / groups.limit);
    if (limit && less_what_is_used) *limit = excess(*limit, used_by(groups, group));
    if (limit && (!least || *limit < *least)) least = limit;
  };
  look_at(groups.root);
  for (fs::path group = fs::path(own_group(groups.controllers)).relative_path(); !group.empty();
       group = group.parent_path())
    look_at(fs::path(groups.root) / group);
  return least;
}

Bytes least_group_limit(Bytes most, bool less_what_is_used) {
  for (const Hierarchy& groups : kHierarchies)
    if (const auto limit = group_limit(groups, less_what_is_used); limit && *limit < most) most = *limit;
  return most;
}

}  // namespace

Result<Bytes> usable_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return fail(Errc::unavailable, "cannot tell how much memory this machine has");
  return least_group_limit(Bytes{static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)}, false);
}

Result<Bytes> free_memory() {
  TRY(const std::string text, read_file("/proc/meminfo", 1_MiB));
  constexpr std::string_view kLine = "MemAvailable:";
  const std::size_t line = text.find(kLine);
  if (line == std::string::npos) return fail(Errc::unavailable, "/proc/meminfo does not say how much memory is free");
  const std::size_t begin = text.find_first_not_of(' ', line + kLine.size());
  std::uint64_t kibibytes = 0;
  if (std::from_chars(text.data() + begin, text.data() + text.size(), kibibytes).ec != std::errc{})
    return fail(Errc::unavailable, "/proc/meminfo does not say how much memory is free");
  return least_group_limit(Bytes{kibibytes << 10}, true);
}

}  // namespace spillway
