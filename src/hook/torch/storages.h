#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

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
    explicit Reader(Storages& storages) : storages_(storages), lock_(storages.mutex_) {}
    // The storage that this address lies in; it need not be its start (a tensor that went through numpy and came back).
    // Null: none. Valid as long as this.
    const Storage* find(const void* address) { return storages_.find(reinterpret_cast<std::uintptr_t>(address)); }

   private:
    Storages& storages_;
    std::scoped_lock<std::mutex> lock_;
  };
  std::vector<Storage> all() const;

 private:
  const Storage* find(std::uintptr_t address);
  const Storage*& found_at(std::uintptr_t begin) { return found_[(begin >> 6) % found_.size()]; }

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Storage> by_address_;
  SpareNodes<std::map<std::uintptr_t, Storage>> spare_;
  std::array<const Storage*, 1024> found_{};  // some of these, which were looked up last
  Families families_;
  std::uint64_t last_ = 0;
};

}  // namespace spillway
