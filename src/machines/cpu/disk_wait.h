#pragma once

#include <atomic>
#include <cstdint>

#include "machines/cpu/clock.h"

namespace spillway {

// Since when (CLOCK_MONOTONIC, nanoseconds) somebody waits for a disk in a system call; 0: nobody does.
using WaitsSince = std::atomic<std::uint64_t>;

// Says so for as long as it lives, to whoever watches from outside: a disk that stops answering stops this thread, too.
// One at a time.
class DiskWait {
 public:
  explicit DiskWait(WaitsSince* since) : since_(since) {
    if (since_ != nullptr) since_->store(now().value, std::memory_order_relaxed);
  }
  DiskWait(const DiskWait&) = delete;
  DiskWait& operator=(const DiskWait&) = delete;
  ~DiskWait() {
    if (since_ != nullptr) since_->store(0, std::memory_order_relaxed);
  }

 private:
  WaitsSince* since_;
};

}  // namespace spillway
