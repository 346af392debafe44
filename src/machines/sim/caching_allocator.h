#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/units.h"

namespace spillway {

// Where PyTorch's allocator puts tensors in a GPU's memory (DeepUM section 5.2; c10/cuda/CUDACachingAllocator.cpp).
// What is free is kept in two pools, for requests up to 1 MiB and for larger ones. The smallest that fits is taken, and
// split if much is left. What no free one fits gets a new segment; none is ever returned. A plain value.
class CachingAllocator {
 public:
  std::uint64_t allocate(Bytes bytes);  // its address
  void free(std::uint64_t address);
  Bytes reserved() const { return reserved_; }  // by all segments, which lie one after the other from 0

 private:
  struct Part {
    Bytes size;
    std::uint64_t segment;  // where that begins
    bool is_small, is_free;
  };
  using Parts = std::map<std::uint64_t, Part>;

  Parts parts_;                                                              // by address
  std::array<std::set<std::pair<std::uint64_t, std::uint64_t>>, 2> free_{};  // sizes and addresses; small ones first
  Bytes reserved_;
};

}  // namespace spillway
