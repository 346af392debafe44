#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "hook/torch/pytorch.h"

namespace spillway {

// Storages that operators used and our allocator did not make: numpy's, mapped files, shared memory. Nobody tells when
// they go, so they are looked at again before a new peak is believed.
//
// Not thread-safe; all calls are made with what they name alive.
class ForeignMemory {
 public:
  void used(const std::vector<c10::StorageImpl*>& storages);
  Bytes peak() const { return peak_; }

 private:
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::uint64_t bytes;
  };
  void forget_dead();

  std::unordered_map<const void*, Known> known_;  // by data: two storages may share it
  std::uint64_t bytes_ = 0;
  Bytes peak_;
};

}  // namespace spillway
