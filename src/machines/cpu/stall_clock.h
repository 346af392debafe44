#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "machines/cpu/streams.h"

namespace spillway {

// How long threads have waited for blocks. The run loop writes, anybody reads at any time; a thread that has waited
// finds its own wait counted as soon as it goes on.
class StallClock {
 public:
  void begin(BlockId block, StreamId stream, Nanos at);
  // Who waits for the block is about to go on.
  void end(BlockId block, Nanos at);

  Nanos of(StreamId stream) const { return {by_stream_[stream.value].load(std::memory_order_relaxed)}; }
  Nanos of_all_threads() const { return {sum_.load(std::memory_order_relaxed)}; }
  // Time in which at least one thread waited.
  Nanos of_the_process() const { return {any_.load(std::memory_order_relaxed)}; }

 private:
  struct Wait {
    StreamId stream;
    Nanos since;
  };
  std::unordered_map<std::uint32_t, std::vector<Wait>> waiting_;
  std::size_t count_ = 0;
  Nanos any_since_;
  std::array<std::atomic<std::uint64_t>, Streams::kMost> by_stream_{};
  std::atomic<std::uint64_t> sum_{0}, any_{0};
};

}  // namespace spillway
