#include "hook/session/transfer_watch.h"

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

std::string TransferWatch::overdue(Nanos now) {
  const Nanos limit{session_.config.io_timeout_ns};
  const std::uint64_t oldest = session_.state.oldest_transfer.load(std::memory_order_relaxed);
  const Nanos passed = std::min(excess(now, std::exchange(last_, now)), kMostAtOnce);
  if (oldest == 0 || oldest != std::exchange(oldest_, oldest)) {
    waited_ = {};
    return {};
  }
  const char state = state_of_loop(session_.state.owner_pid);
  if (state == 0) waited_ = {};
  if (state == 0 || state == 'T' || state == 't') return {};
  waited_ += passed;
  if (limit == Nanos{} || waited_ < limit) return {};
  return fmt::format(
      "{} has not answered a {} of a block for {}: tensors that are on their way cannot be had, so the run has been "
      "ended; check the disk (its messages are in dmesg), or allow more time with --io-timeout",
      session_.config.ssd_directory.data(), oldest % 2 == 1 ? "write" : "read", to_text(waited_));
}

}  // namespace spillway
