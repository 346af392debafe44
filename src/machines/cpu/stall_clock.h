#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace spillway {

// The time in which at least one thread waited for a block. The run loop writes, any thread reads at any time.
class StallClock {
 public:
  void begin(BlockId block, StreamId stream, Nanos at);
  // Who waits for the block is about to go on.
  void end(BlockId block, Nanos at);

  // So far; a wait that goes on counts up to `now`.
  Nanos total(Nanos now) const;

 private:
  void publish(std::uint64_t ended, std::uint64_t open_since);

  std::unordered_map<std::uint32_t, std::vector<StreamId>> waiting_;  // by block
  std::size_t count_ = 0;
  Nanos since_;
  // Read together: odd while they are written.
  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::uint64_t> ended_{0}, open_since_{0};  // nanoseconds; open since 0: nobody waits
};

}  // namespace spillway
