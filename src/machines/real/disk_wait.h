#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "machines/real/clock.h"

namespace spillway {

// What a disk is waited for to do: with blocks, for tensors that are made, with a file that the script waits for (a
// trace, a plan, a journal's beginning), and with the rest of a journal, for which only a thread of its own waits.
enum class WaitsFor : std::uint8_t { block_read, block_write, space, record, journal };

// Who waits for a disk now, for whoever watches from outside: one that stops answering stops the thread, too. 0:
// nobody. Else one word, so that another process never sees parts of two: since when (CLOCK_MONOTONIC, milliseconds),
// above the 22 bits of the thread's number, above three of what it waits for. There are more slots than can be needed
// at a time.
using DiskWaits = std::array<std::atomic<std::uint64_t>, 16>;
constexpr std::uint64_t disk_wait(WaitsFor what, std::int64_t thread, Nanos since) {
  CHECK(thread > 0 && thread >> 22 == 0);
  return since.value / 1'000'000 << 25 | static_cast<std::uint64_t>(thread) << 3 | static_cast<std::uint64_t>(what);
}
constexpr std::int64_t thread_of(std::uint64_t wait) { return static_cast<std::int64_t>(wait >> 3 & ((1u << 22) - 1)); }
constexpr WaitsFor what_of(std::uint64_t wait) { return static_cast<WaitsFor>(wait & 7); }

// The thread that makes it waits for as long as it lives.
class DiskWait {
 public:
  // `waits`: null where nobody watches.
  DiskWait(DiskWaits* waits, WaitsFor what) {
    if (waits == nullptr) return;
    const std::uint64_t word = disk_wait(what, ::gettid(), now());
    for (auto slot = waits->begin(); slot_ == nullptr; ++slot) {
      CHECK(slot != waits->end());
      std::uint64_t nobody = 0;
      if (slot->compare_exchange_strong(nobody, word, std::memory_order_relaxed)) slot_ = slot;
    }
  }
  DiskWait(const DiskWait&) = delete;
  DiskWait& operator=(const DiskWait&) = delete;
  ~DiskWait() {
    if (slot_ != nullptr) slot_->store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t>* slot_ = nullptr;
};

}  // namespace spillway
