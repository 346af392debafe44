#include "machines/real/stall_clock.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {

void StallClock::begin(BlockId block, StreamId stream, Nanos at) {
  const MutexLock lock(mutex_);
  std::vector<StreamId>& streams = waiting_[block.value];
  // A thread waits for one block at a time, so a second report of the same is an old one.
  if (std::ranges::find(streams, stream) != streams.end()) return;
  streams.push_back(stream);
  add(at);
}

void StallClock::end(BlockId block, Nanos at) {
  const MutexLock lock(mutex_);
  const auto found = waiting_.find(block.value);
  if (found == waiting_.end()) return;
  remove(found->second.size(), at);
  waiting_.erase(found);
}

void StallClock::begin(Nanos at) {
  const MutexLock lock(mutex_);
  add(at);
}

void StallClock::end(Nanos at) {
  const MutexLock lock(mutex_);
  remove(1, at);
}

// A fault may be told when a wait that began later is over: no time counts twice.
void StallClock::add(Nanos at) {
  if (count_++ == 0) since_ = std::max(at, since_);
  total_.store(kSomebodyWaits, std::memory_order_relaxed);
}

void StallClock::remove(std::size_t waits, Nanos at) {
  CHECK(waits <= count_);
  count_ -= waits;
  if (count_ > 0) return;
  ended_ += excess(at, since_);
  since_ = std::max(at, since_);
  total_.store(ended_.value, std::memory_order_relaxed);
}

std::optional<Nanos> StallClock::waits_since() const {
  if (total_.load(std::memory_order_relaxed) != kSomebodyWaits) return std::nullopt;
  const MutexLock lock(mutex_);
  return count_ == 0 ? std::nullopt : std::optional(since_);
}

Nanos StallClock::total(Nanos now) const {
  if (const std::uint64_t known = total_.load(std::memory_order_relaxed); known != kSomebodyWaits) return {known};
  const MutexLock lock(mutex_);
  return count_ == 0 ? ended_ : ended_ + excess(now, since_);
}

}  // namespace spillway
