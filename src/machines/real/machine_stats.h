#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "machines/real/transfer_meter.h"
#include "memory/tier.h"

namespace spillway {

// What a real machine has done so far. The run loop writes; any thread reads at any time.
class MachineStats {
 public:
  void fault() { faults_.fetch_add(1, std::memory_order_relaxed); }
  void split() { splits_.fetch_add(1, std::memory_order_relaxed); }
  void first_touch() { first_touches_.fetch_add(1, std::memory_order_relaxed); }
  void wrote(Bytes bytes) { written_.fetch_add(bytes.value, std::memory_order_relaxed); }
  void moved(Tier from, Tier to, Bytes bytes) {
    moved_[link(from, to)].fetch_add(bytes.value, std::memory_order_relaxed);
  }
  void holds(Tier tier, Bytes bytes) {
    held_[static_cast<std::size_t>(tier)].store(bytes.value, std::memory_order_relaxed);
    auto& peak = peaks_[static_cast<std::size_t>(tier)];
    if (peak.load(std::memory_order_relaxed) < bytes.value) peak.store(bytes.value, std::memory_order_relaxed);
  }
  void dropped_clean(Bytes bytes) { dropped_clean_.fetch_add(bytes.value, std::memory_order_relaxed); }
  void found_unseen_write() { unseen_writes_.fetch_add(1, std::memory_order_relaxed); }
  void transfer_failed(int error) { last_error_.store(error, std::memory_order_relaxed); }

  std::uint64_t faults() const { return faults_.load(std::memory_order_relaxed); }  // of blocks that had bytes
  std::uint64_t first_touches() const { return first_touches_.load(std::memory_order_relaxed); }
  // Blocks that came in pieces, since a kernel that uses more than the device came back to them.
  std::uint64_t splits() const { return splits_.load(std::memory_order_relaxed); }
  Bytes written() const { return {written_.load(std::memory_order_relaxed)}; }  // to the SSD, for nothing or not
  Bytes moved(Tier from, Tier to) const { return {moved_[link(from, to)].load(std::memory_order_relaxed)}; }
  // That left for the SSD without being written, since it had the same bytes already.
  Bytes dropped_clean() const { return {dropped_clean_.load(std::memory_order_relaxed)}; }
  // Blocks that no kernel had written to since they came, as far as was told, and that were not the same all the same.
  std::uint64_t unseen_writes() const { return unseen_writes_.load(std::memory_order_relaxed); }
  Bytes held(Tier tier) const { return {held_[static_cast<std::size_t>(tier)].load(std::memory_order_relaxed)}; }
  Bytes peak(Tier tier) const { return {peaks_[static_cast<std::size_t>(tier)].load(std::memory_order_relaxed)}; }
  int last_transfer_error() const { return last_error_.load(std::memory_order_relaxed); }  // an errno, or 0

  TransferMeter reads, writes;  // of the SSD

 private:
  static std::size_t link(Tier from, Tier to) {
    return static_cast<std::size_t>(from) * 3 + static_cast<std::size_t>(to);
  }

  std::atomic<std::uint64_t> faults_{0}, first_touches_{0}, written_{0}, dropped_clean_{0}, unseen_writes_{0},
      splits_{0};
  std::array<std::atomic<std::uint64_t>, 9> moved_{};
  std::array<std::atomic<std::uint64_t>, 3> held_{}, peaks_{};
  std::atomic<int> last_error_{0};
};

}  // namespace spillway
