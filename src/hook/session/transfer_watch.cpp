#include "hook/session/transfer_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/text.h"

namespace spillway {
namespace {

// Between two looks; if more has passed, we were stopped ourselves.
constexpr Nanos kMostAtOnce{2'000'000'000};

bool is_stopped(std::int64_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid), 4_KiB);
  if (!stat) return false;
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) return false;
  const char state = (*stat)[name_end + 2];
  return state == 'T' || state == 't';
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
  if (is_stopped(session_.state.owner_pid)) return {};
  waited_ += passed;
  if (limit == Nanos{} || waited_ < limit) return {};
  return fmt::format(
      "{} has not answered a {} of a block for {}: tensors that are on their way cannot be had, so the run has been "
      "ended; check the disk (its messages are in dmesg), or allow more time with --io-timeout",
      session_.config.ssd_directory.data(), oldest % 2 == 1 ? "write" : "read", to_text(waited_));
}

}  // namespace spillway
