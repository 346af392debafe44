#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "recorder/events.h"
#include "recorder/lineage.h"
#include "runtime/block_traffic.h"

namespace spillway {

// The allocations that are alive, by address. Any thread; the lock is a leaf, and nothing under it touches managed
// memory.
class Storages {
 public:
  struct Storage {
    StorageId id;
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    Lineage lineage{};
    std::string_view maker{};   // the kernel that made it; empty: made by none
    MovedBytes moved_before{};  // of its memory, when it was made
  };

  // A storage is about to be made: tells it apart from those alike. add() or forget() must follow.
  void name(Lineage& newborn);
  void forget(const Lineage& unborn);
  StorageId add(Storage newborn);  // which gets its id here
  std::optional<Storage> remove(const void* memory);
  // The storage that this address lies in; it need not be its start (a tensor that went through numpy and came back).
  std::optional<Storage> find(const void* address) const;
  std::vector<Storage> all() const;

 private:
  mutable Mutex mutex_;
  std::map<std::uintptr_t, Storage> by_address_ SPILLWAY_GUARDED_BY(mutex_);
  Families families_ SPILLWAY_GUARDED_BY(mutex_);
  std::uint64_t last_ SPILLWAY_GUARDED_BY(mutex_) = 0;
};

}  // namespace spillway
