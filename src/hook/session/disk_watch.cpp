#include "hook/session/disk_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace spillway {
namespace {

// Between two looks; if more has passed, we were stopped ourselves.
constexpr Nanos kMostAtOnce{2'000'000'000};

// What --record writes is also put together in that time.
constexpr Nanos kLeastForRecord{5'000'000'000};

// 'D', 'S', 'T' for stopped, ...; 0 if there is no such thread.
char state_in(const std::filesystem::path& stat_file, std::string_view after) {
  const auto stat = read_file(stat_file.string(), 4_KiB);
  const std::size_t at = stat ? stat->rfind(after) : std::string::npos;
  return at != std::string::npos && at + after.size() < stat->size() ? (*stat)[at + after.size()] : '\0';
}

// Of the run loop's thread; 0 if the process has none: it has not started it yet, has ended, or runs another program.
char state_of_loop(std::int64_t pid) {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error))
    if (const char state = state_in(task.path() / "stat", "(spillway-loop) "); state != 0) return state;
  return 0;
}

// 0 if it has ended.
char state_of_process(std::int64_t pid) {
  const char state = state_in(fmt::format("/proc/{}/stat", pid), ") ");
  return state == 'Z' ? '\0' : state;
}

}  // namespace

std::string DiskWatch::overdue(Nanos now) {
  const SessionState& state = session_.state;
  const Nanos limit{session_.config.io_timeout_ns};
  const Nanos passed = std::min(excess(now, std::exchange(last_, now)), kMostAtOnce);
  const std::uint64_t transfer = state.oldest_transfer.load(std::memory_order_relaxed);
  const std::array<std::uint64_t, 3> since{transfer, state.asks_for_space_since.load(std::memory_order_relaxed),
                                           state.writes_record_since.load(std::memory_order_relaxed)};
  enum : std::size_t { kTransfer, kSpace, kRecord };
  std::optional<char> loop;
  for (std::size_t kind = kTransfer; kind <= kRecord; ++kind) {
    Waiting& waiting = waiting_[kind];
    if (since[kind] == 0 || since[kind] != std::exchange(waiting.since, since[kind])) {
      waiting.waited = {};
      continue;
    }
    if (!loop) loop = state_of_loop(state.owner_pid);
    // The file for what leaves is made before there is a loop.
    const char thread = *loop == 0 && kind == kSpace ? state_of_process(state.owner_pid) : *loop;
    if (thread == 0) waiting.waited = {};
    if (thread == 0 || thread == 'T' || thread == 't') continue;
    waiting.waited += passed;
    if (limit == Nanos{} || waiting.waited < (kind == kRecord ? std::max(limit, kLeastForRecord) : limit)) continue;
    const std::array<std::string, 3> what{
        fmt::format("{} has not answered a {} of a block for {}: tensors that are on their way cannot be had",
                    session_.config.ssd_directory.data(), transfer % 2 == 1 ? "write" : "read",
                    to_text(waiting.waited)),
        fmt::format("{} has not answered for {} that it was asked for space: no tensor can be made",
                    session_.config.ssd_directory.data(), to_text(waiting.waited)),
        fmt::format("what --record writes beside {} has not been taken for {}: the script waits for it",
                    session_.config.record_path.data(), to_text(waiting.waited))};
    return what[kind] +
           ", so the run has been ended; check the disk (its messages are in dmesg), or allow more time with "
           "--io-timeout";
  }
  return {};
}

}  // namespace spillway
