#include "machines/cpu/stall_clock.h"

#include <algorithm>

namespace spillway {

void StallClock::begin(BlockId block, StreamId stream, Nanos at) {
  std::vector<Wait>& waits = waiting_[block.value];
  // A thread waits for one block at a time, so a second report of the same is an old one.
  if (std::ranges::any_of(waits, [&](const Wait& wait) { return wait.stream == stream; })) return;
  waits.push_back({stream, at});
  if (count_++ == 0) any_since_ = std::max(at, any_since_);
}

void StallClock::end(BlockId block, Nanos at) {
  const auto found = waiting_.find(block.value);
  if (found == waiting_.end()) return;
  for (const Wait& wait : found->second) {
    const std::uint64_t waited = excess(at, wait.since).value;
    by_stream_[wait.stream.value].fetch_add(waited, std::memory_order_relaxed);
    sum_.fetch_add(waited, std::memory_order_relaxed);
  }
  count_ -= found->second.size();
  waiting_.erase(found);
  if (count_ > 0) return;
  any_.fetch_add(excess(at, any_since_).value, std::memory_order_relaxed);
  any_since_ = at;
}

}  // namespace spillway
