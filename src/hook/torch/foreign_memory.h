#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "hook/torch/pytorch.h"

namespace spillway {

// Storages that operators used and our allocator did not make: numpy's, mapped files, shared memory. Nobody tells when
// they go, so they are looked at again before a new peak is believed; where there are many, only one that is a
// sixteenth higher, or each batch of a script would have all of them looked at; and whenever they are twice as many.
//
// Not thread-safe; all calls are made with what they name alive.
class ForeignMemory {
 public:
  // What keeps a storage's place in memory once it is gone. The last of these may take the interpreter's lock (PyTorch
  // before 2.10), so the caller lets go of them when it holds none of its own.
  using Remains = std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>;
  void used(const std::vector<c10::StorageImpl*>& storages, Remains& remains);
  Bytes peak() const { return peak_; }

 private:
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::uint64_t bytes;
  };
  void forget_dead(Remains& remains);

  std::unordered_map<const void*, Known> known_;  // by data: two storages may share it
  static constexpr std::size_t kFew = 256;        // that are looked at in no time
  std::size_t most_known_ = kFew;                 // before they are looked at again
  std::uint64_t bytes_ = 0;
  Bytes peak_;
};

}  // namespace spillway
