#include "session/disk_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace spillway {
namespace {

// Between two looks; if more has passed, we were stopped ourselves.
constexpr Nanos kMostAtOnce{2'000'000'000};

constexpr Nanos kLeastForManyCalls{5'000'000'000};

// 'D', 'S', 'T' for stopped, ...; 0 if there is no such thread.
char state_in(const std::filesystem::path& stat_file, std::string_view after) {
  const auto stat = read_file(stat_file.string(), 4_KiB);
  const std::size_t at = stat ? stat->rfind(after) : std::string::npos;
  return at != std::string::npos && at + after.size() < stat->size() ? (*stat)[at + after.size()] : '\0';
}

// Of the process's thread with that name; 0 if there is none: it has not been started yet, has ended, or the process
// runs another program.
char state_of_thread(std::int64_t pid, std::string_view name) {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error))
    if (const char state = state_in(task.path() / "stat", fmt::format("({}) ", name)); state != 0) return state;
  return 0;
}

// 'Z': its main thread at least has ended.
char state_of_process(std::int64_t pid) { return state_in(fmt::format("/proc/{}/stat", pid), ") "); }

// Of whoever keeps the process from going on, or from ending; 0 if nobody does.
char state_of_waiting(std::int64_t pid, DiskWatch::Kind kind) {
  if (kind == DiskWatch::kJournal)  // The script does not wait for that, but its process cannot end before.
    return state_of_process(pid) == 'Z' ? state_of_thread(pid, "spillway-record") : '\0';
  const char loop = state_of_thread(pid, "spillway-loop");
  if (loop != 0 || kind == DiskWatch::kTransfer) return loop;
  const char process = state_of_process(pid);  // The files are made before there is a loop.
  return process == 'Z' ? '\0' : process;
}

}  // namespace

Nanos limit_of_many_calls(Nanos io_timeout) {
  return io_timeout == Nanos{} ? Nanos{} : std::max(io_timeout, kLeastForManyCalls);
}

std::string DiskWatch::overdue(Nanos now) {
  const SessionState& state = session_.state;
  const Nanos limit{session_.config.io_timeout_ns};
  const Nanos passed = std::min(excess(now, std::exchange(last_, now)), kMostAtOnce);
  const std::uint64_t transfer = state.oldest_transfer.load(std::memory_order_relaxed);
  const std::array<std::uint64_t, 4> since{transfer, state.asks_for_space_since.load(std::memory_order_relaxed),
                                           state.writes_record_since.load(std::memory_order_relaxed),
                                           state.writes_journal_since.load(std::memory_order_relaxed)};
  for (const Kind kind : {kTransfer, kSpace, kRecord, kJournal}) {
    Waiting& waiting = waiting_[kind];
    if (since[kind] == 0 || since[kind] != std::exchange(waiting.since, since[kind])) {
      waiting.waited = {};
      continue;
    }
    const char thread = state_of_waiting(state.owner_pid, kind);
    if (thread == 0) waiting.waited = {};
    if (thread == 0 || thread == 'T' || thread == 't') continue;
    waiting.waited += passed;
    if (limit == Nanos{} || waiting.waited < (kind == kRecord ? limit_of_many_calls(limit) : limit)) continue;
    const std::array<std::string, 4> what{
        fmt::format("{} has not answered a {} of a block for {}: tensors that are on their way cannot be had",
                    session_.config.ssd_directory.data(), transfer % 2 == 1 ? "write" : "read",
                    to_text(waiting.waited)),
        fmt::format("{} has not answered for {} that it was asked for space: no tensor can be made",
                    session_.config.ssd_directory.data(), to_text(waiting.waited)),
        fmt::format("what --record writes beside {} has not been taken for {}: the script waits for it",
                    session_.config.record_path.data(), to_text(waiting.waited)),
        fmt::format("{} has not been taken for {}: the script has ended, and its process cannot",
                    session_.config.journal_path.data(), to_text(waiting.waited))};
    return what[kind] +
           ", so the run has been ended; check the disk (its messages are in dmesg), or allow more time with "
           "--io-timeout";
  }
  return {};
}

}  // namespace spillway
