#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/tier.h"

namespace spillway {

// Where blocks go that leave memory: slots of one block each in a file that has no name, nobody else can open, and that
// is gone when the process is, however it ends. Its space is allocated before it is promised.
class SpillFile {
 public:
  // A capacity of zero means what the file system has free. The error names the directory, the reason and the remedy.
  static Result<SpillFile> open(const std::string& directory, Bytes capacity, Bytes slot_bytes = kBlockBytes);

  SpillFile(SpillFile&& other) noexcept
      : directory_(std::move(other.directory_)),
        fd_(std::move(other.fd_)),
        slot_bytes_(other.slot_bytes_),
        capacity_slots_(other.capacity_slots_),
        remedy_(other.remedy_),
        growing_(std::move(other.growing_)),
        reserved_(other.reserved_.load()),
        most_if_plenty_(other.most_if_plenty_),
        used_before_(other.used_before_),
        free_(std::move(other.free_)) {}

  int fd() const { return fd_.get(); }
  std::uint32_t capacity_slots() const { return capacity_slots_; }
  Bytes capacity() const { return slot_bytes_ * capacity_slots_; }
  std::uint64_t offset_of(std::uint32_t slot) const { return slot_bytes_.value * slot; }
  std::string_view remedy() const { return remedy_; }  // where that is too little

  // Sees to it that the file has space for this many slots in all. Any thread.
  Result<> reserve(std::uint32_t slots);
  std::uint32_t reserved_slots() const { return reserved_.load(std::memory_order_acquire); }

  // Like reserve(), for what would be nice to have: so much, at most, as half of what the file system had free when
  // this was called first. Once that is not to be had no more is asked for: each try fills the disk for a moment.
  void reserve_if_plenty(std::uint32_t slots);

  // A slot with space behind it, or none if all are in use.
  std::optional<std::uint32_t> take();
  bool has_free_slot() const { return !free_.empty() || used_before_ < reserved_slots(); }
  void give_back(std::uint32_t slot) {
    CHECK(slot < used_before_ && slots_in_use() > 0);
    free_.push_back(slot);
  }
  std::uint32_t slots_in_use() const { return used_before_ - static_cast<std::uint32_t>(free_.size()); }

 private:
  SpillFile(std::string directory, UniqueFd fd, Bytes slot_bytes, std::uint32_t capacity_slots, std::string_view remedy)
      : directory_(std::move(directory)),
        fd_(std::move(fd)),
        slot_bytes_(slot_bytes),
        capacity_slots_(capacity_slots),
        remedy_(remedy) {}

  Result<> reserve(std::uint32_t slots, std::uint32_t most);
  std::uint64_t free_slots() const;  // of its file system; zero if that does not say

  std::string directory_;
  UniqueFd fd_;
  Bytes slot_bytes_;
  std::uint32_t capacity_slots_;
  std::string_view remedy_;
  std::unique_ptr<Mutex> growing_ = std::make_unique<Mutex>();  // whoever reserves
  std::atomic<std::uint32_t> reserved_{0};
  std::optional<std::uint32_t> most_if_plenty_;
  std::uint32_t used_before_ = 0;    // slots from here on have never been taken
  std::vector<std::uint32_t> free_;  // as used_before_, of the thread that takes slots
};

}  // namespace spillway
