#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "base/ids.h"

namespace spillway {

// Every thread of the script that runs kernels or faults is a stream of its own, numbered as they appear.
class Streams {
 public:
  static constexpr std::uint32_t kMost = 4096;
  // Threads beyond that are one stream, and so none with kernels that come one after the other.
  static constexpr StreamId kShared{kMost - 1};

  Streams();

  // The calling thread's; cheap after its first call.
  StreamId of_this_thread();
  // So many have appeared, kShared left out.
  std::uint32_t count() const { return std::min(count_.load(std::memory_order_acquire), kShared.value); }
  // That of any thread. For the run loop only.
  StreamId of(pid_t thread);

 private:
  std::uint32_t enter(pid_t thread);

  const std::uint64_t generation_;  // tells this object from another one at the same address
  std::atomic<std::uint32_t> count_{0};
  std::array<std::atomic<pid_t>, kMost> threads_{};
  std::uint32_t known_ = 0;  // the run loop's, like the next
  std::unordered_map<pid_t, std::uint32_t> by_thread_;
};

}  // namespace spillway
