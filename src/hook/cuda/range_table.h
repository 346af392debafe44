#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hook/cuda/launch.h"

namespace spillway {

// Which registered range does an address lie in? Asked for every word of every launch, so it costs two loads and a
// search among the ranges that begin in the same 2 MiB. Not for several threads at once.
class RangeTable {
 public:
  // False, and nothing changes, where it is empty, lies above 2^47, or overlaps another.
  bool add(const CudaRange& range);
  // False where none begins there.
  bool remove(std::uint64_t begin);
  // Null: in none. Valid until the next add or remove.
  const CudaRange* find(std::uint64_t address) const noexcept {
    if (address - lowest_ >= extent_) return nullptr;  // the most words are no pointers
    return find_in_granule(address);
  }
  // Calls f(const CudaRange&) for all that share a byte with [begin, begin + bytes), in order of addresses.
  template <class F>
  void for_each_in(std::uint64_t begin, std::uint64_t bytes, F f) const {
    if (const CudaRange* first = bytes == 0 ? nullptr : find(begin)) f(*first);
    const std::uint64_t end = bytes > ~begin ? ~std::uint64_t{0} : begin + bytes;
    for (const CudaRange* next = next_after(begin, end); next != nullptr; next = next_after(next->begin, end)) f(*next);
  }

 private:
  static constexpr unsigned kAddressBits = 47, kGranuleBits = 21, kLeafBits = 34;
  struct Granule {
    CudaRange from_before;              // the one that its first byte belongs to, if that begins before
    std::vector<CudaRange> begin_here;  // in order
  };
  using Leaf = std::array<Granule, std::size_t{1} << (kLeafBits - kGranuleBits)>;

  const CudaRange* find_in_granule(std::uint64_t address) const noexcept;
  // The first that begins above the address and below the end.
  const CudaRange* next_after(std::uint64_t address, std::uint64_t end) const noexcept;
  const Granule* granule(std::uint64_t address) const noexcept;
  Granule& make_granule(std::uint64_t address);
  void cover(const CudaRange& range, const CudaRange& with);  // all granules that it reaches into after its first

  std::array<std::unique_ptr<Leaf>, std::size_t{1} << (kAddressBits - kLeafBits)> leaves_;
  std::uint64_t lowest_ = 0, extent_ = 0;  // of all that were ever added
};

}  // namespace spillway
