#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "base/units.h"
#include "memory/tier.h"

namespace spillway {

// A reserved range of addresses, aligned to blocks, backed by huge pages where the kernel has them and unmapped at the
// end. It costs nothing until it is touched. fork() leaves it out: a child that touches it dies by SIGSEGV instead of
// computing on zeroes.
class MemoryRange {
 public:
  static Result<MemoryRange> reserve(std::uint32_t blocks);

  MemoryRange(MemoryRange&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_(other.mapped_),
        begin_(other.begin_),
        blocks_(other.blocks_) {}
  MemoryRange& operator=(MemoryRange&&) = delete;
  ~MemoryRange();

  std::byte* begin() const { return begin_; }
  std::byte* end() const { return begin_ + bytes(); }
  std::size_t bytes() const { return blocks_ * kBlockBytes.value; }
  std::uint32_t blocks() const { return blocks_; }

  bool contains(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= reinterpret_cast<std::uintptr_t>(begin_) && at < reinterpret_cast<std::uintptr_t>(begin_) + bytes();
  }
  std::byte* block(std::uint32_t index) const { return begin_ + index * kBlockBytes.value; }
  std::uint32_t index_of(const void* address) const {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(static_cast<const std::byte*>(address) - begin_) /
                                      kBlockBytes.value);
  }

 private:
  MemoryRange(void* mapping, std::size_t mapped, std::byte* begin, std::uint32_t blocks)
      : mapping_(mapping), mapped_(mapped), begin_(begin), blocks_(blocks) {}

  void* mapping_;
  std::size_t mapped_;
  std::byte* begin_;
  std::uint32_t blocks_;
};

}  // namespace spillway
