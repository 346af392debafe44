#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/units.h"

namespace spillway {

// The time in which at least one thread waited for memory: for a block that it touched, or for all that its next kernel
// uses. Any thread may tell and read it.
class StallClock {
 public:
  // A thread of this stream has touched the block.
  void begin(BlockId block, StreamId stream, Nanos at);
  // Who waits for the block is about to go on.
  void end(BlockId block, Nanos at);

  // The calling thread waits for its kernel, and goes on.
  void begin(Nanos at);
  void end(Nanos at);

  // Since when somebody waits; nothing: nobody does.
  std::optional<Nanos> waits_since() const;
  // So far; a wait that goes on counts up to `now`.
  Nanos total(Nanos now) const;

 private:
  void add(Nanos at) SPILLWAY_REQUIRES(mutex_);
  void remove(std::size_t waits, Nanos at) SPILLWAY_REQUIRES(mutex_);

  // All waits so far, which is read without the lock; kSomebodyWaits while one goes on.
  static constexpr std::uint64_t kSomebodyWaits = UINT64_MAX;
  std::atomic<std::uint64_t> total_{0};
  mutable Mutex mutex_;  // Nobody waits while holding it.
  std::unordered_map<std::uint32_t, std::vector<StreamId>> waiting_ SPILLWAY_GUARDED_BY(mutex_);  // by block
  std::size_t count_ SPILLWAY_GUARDED_BY(mutex_) = 0;                                             // of waits
  Nanos since_ SPILLWAY_GUARDED_BY(mutex_);  // while there are some
  Nanos ended_ SPILLWAY_GUARDED_BY(mutex_);  // all before
};

}  // namespace spillway
