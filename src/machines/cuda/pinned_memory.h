#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "machines/cuda/driver.h"

namespace spillway {

// Host memory that the GPU copies from and to, in slots of one block each: made in steps as it is needed, up to a
// budget, and kept. Used by one thread.
class PinnedMemory {
 public:
  // The driver outlives it.
  PinnedMemory(const CudaDriver& driver, std::uint32_t most_slots, Bytes slot_bytes)
      : driver_(driver), most_slots_(most_slots), slot_bytes_(slot_bytes) {}
  // Nothing is copied from or to it any more.
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Makes the first step at once, before others have taken what the system pins.
  Result<> begin();
  // Null: the budget is in use, or the system pins no more; shortage() says so then.
  std::byte* take();
  void give_back(std::byte* slot) { free_.push_back(slot); }
  std::uint32_t slots_in_use() const { return slots_ - static_cast<std::uint32_t>(free_.size()); }
  Bytes pinned() const { return slot_bytes_ * slots_; }
  // Why less could be pinned than the budget says; empty: no such thing has happened.
  const std::string& shortage() const { return shortage_; }

 private:
  void grow();

  const CudaDriver& driver_;
  std::uint32_t most_slots_;
  Bytes slot_bytes_;
  std::uint32_t slots_ = 0;
  std::vector<void*> steps_;
  std::vector<std::byte*> free_;
  std::string shortage_;
};

}  // namespace spillway
