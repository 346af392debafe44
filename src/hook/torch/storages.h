#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/spare_nodes.h"
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
  // Looks several up at once, while nobody else does.
  class Reader {
   public:
    // Clang follows no lock that a member holds.
    explicit Reader(Storages& storages) SPILLWAY_UNPROVED : storages_(storages), lock_(storages.mutex_) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // The storage that this address lies in; it need not be its start (a tensor that went through numpy and came back).
    // Null: none. Valid as long as this.
    const Storage* find(const void* address) SPILLWAY_UNPROVED {
      return storages_.find(reinterpret_cast<std::uintptr_t>(address));
    }

   private:
    Storages& storages_;
    MutexLock<Mutex> lock_;
  };
  std::vector<Storage> all() const;

 private:
  const Storage* find(std::uintptr_t address) SPILLWAY_REQUIRES(mutex_);
  const Storage*& found_at(std::uintptr_t begin) SPILLWAY_REQUIRES(mutex_) {
    return found_[(begin >> 6) % found_.size()];
  }

  mutable Mutex mutex_;
  std::map<std::uintptr_t, Storage> by_address_ SPILLWAY_GUARDED_BY(mutex_);
  SpareNodes<std::map<std::uintptr_t, Storage>> spare_ SPILLWAY_GUARDED_BY(mutex_);
  // Some of these, which were looked up last.
  std::array<const Storage*, 1024> found_ SPILLWAY_GUARDED_BY(mutex_){};
  Families families_ SPILLWAY_GUARDED_BY(mutex_);
  std::uint64_t last_ SPILLWAY_GUARDED_BY(mutex_) = 0;
};

}  // namespace spillway
