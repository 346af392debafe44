#include "machines/cpu/stall_clock.h"

#include <algorithm>

namespace spillway {

void StallClock::begin(BlockId block, StreamId stream, Nanos at) {
  std::vector<StreamId>& streams = waiting_[block.value];
  // A thread waits for one block at a time, so a second report of the same is an old one.
  if (std::ranges::find(streams, stream) != streams.end()) return;
  streams.push_back(stream);
  if (count_++ > 0) return;
  since_ = std::max(at, since_);
  publish(ended_.load(std::memory_order_relaxed), since_.value);
}

void StallClock::end(BlockId block, Nanos at) {
  const auto found = waiting_.find(block.value);
  if (found == waiting_.end()) return;
  count_ -= found->second.size();
  waiting_.erase(found);
  if (count_ > 0) return;
  publish(ended_.load(std::memory_order_relaxed) + excess(at, since_).value, 0);
  since_ = at;
}

void StallClock::publish(std::uint64_t ended, std::uint64_t open_since) {
  version_.fetch_add(1, std::memory_order_acq_rel);
  ended_.store(ended, std::memory_order_release);
  open_since_.store(open_since, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

Nanos StallClock::total(Nanos now) const {
  for (;;) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    const Nanos ended{ended_.load(std::memory_order_acquire)}, since{open_since_.load(std::memory_order_acquire)};
    if (before % 2 == 0 && version_.load(std::memory_order_acquire) == before)
      return since == Nanos{} ? ended : ended + excess(now, since);
  }
}

}  // namespace spillway
