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

// The state of the thread that waits for the disk ('D', 'S', 'T' for stopped, ...); 0 if the process has none, since it
// has ended or runs another program.
char state_of_loop(std::int64_t pid) {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    const auto stat = read_file((task.path() / "stat").string(), 4_KiB);
    constexpr std::string_view kName = "(spillway-loop) ";
    const std::size_t at = stat ? stat->find(kName) : std::string::npos;
    if (at != std::string::npos && at + kName.size() < stat->size()) return (*stat)[at + kName.size()];
  }
  return 0;
}

}  // namespace

std::string DiskWatch::overdue(Nanos now) {
  const SessionState& state = session_.state;
  const Nanos limit{session_.config.io_timeout_ns};
  const Nanos passed = std::min(excess(now, std::exchange(last_, now)), kMostAtOnce);
  const std::uint64_t transfer = state.oldest_transfer.load(std::memory_order_relaxed);
  const std::array<std::uint64_t, 3> since{transfer, state.asks_for_space_since.load(std::memory_order_relaxed),
                                           state.writes_record_since.load(std::memory_order_relaxed)};
  std::optional<char> loop;
  for (std::size_t kind = 0; kind < since.size(); ++kind) {
    Waiting& waiting = waiting_[kind];
    if (since[kind] == 0 || since[kind] != std::exchange(waiting.since, since[kind])) {
      waiting.waited = {};
      continue;
    }
    if (!loop) loop = state_of_loop(state.owner_pid);
    if (*loop == 0) waiting.waited = {};
    if (*loop == 0 || *loop == 'T' || *loop == 't') continue;
    waiting.waited += passed;
    if (limit == Nanos{} || waiting.waited < limit) continue;
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
