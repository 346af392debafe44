#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>

#include "base/units.h"
#include "machines/cpu/userfault.h"

namespace spillway {

// Faults on their way from the reader to the run loop: one thread pushes, one pops, nobody waits or allocates. What
// does not fit is not lost: its thread waits in the kernel, and whoever sees take_overflow() wakes all, so that they
// fault again.
class FaultQueue {
 public:
  struct Entry {
    Userfault::Fault fault;
    Nanos at;
  };
  static constexpr std::size_t kCapacity = 1024;

  void push(const Entry& entry) noexcept {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == kCapacity) {
      overflowed_.store(true, std::memory_order_release);
      return;
    }
    entries_[tail % kCapacity] = entry;
    tail_.store(tail + 1, std::memory_order_release);
  }

  std::optional<Entry> pop() noexcept {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
    const Entry entry = entries_[head % kCapacity];
    head_.store(head + 1, std::memory_order_release);
    return entry;
  }

  // True once after entries were turned away.
  bool take_overflow() noexcept { return overflowed_.exchange(false, std::memory_order_acq_rel); }

 private:
  std::array<Entry, kCapacity> entries_{};
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::atomic<bool> overflowed_{false};
};

}  // namespace spillway
