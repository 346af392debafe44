#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "import/kineto.h"

namespace spillway {

// PyTorch's allocator of GPUs gives multiples of so many bytes.
inline constexpr std::uint64_t kCudaMultiple = 512;

// What an allocator gave and got back, from which the memory of a tensor is found by its size and by when it was made.
// n events cost O(n log n), and each claim O(log n), whatever the events are.
class Allocations {
 public:
  // The allocator gives multiples of so many bytes.
  Allocations(std::vector<KinetoMemory> events, std::uint64_t multiple);

  struct Claim {
    const KinetoMemory& given;
    std::optional<std::int64_t> freed;  // when it got it back; nothing if it never did
  };
  // The first memory of that size that was given in that time, and that nobody has claimed.
  std::optional<Claim> claim(Bytes bytes, KinetoSpan during);

 private:
  std::uint64_t given_for(std::uint64_t bytes) const;

  std::uint64_t multiple_;
  std::vector<KinetoMemory> events_;                                    // by time
  std::vector<std::optional<std::int64_t>> freed_;                      // by event
  std::unordered_map<std::uint64_t, std::set<std::size_t>> unclaimed_;  // by size; the events in order
};

}  // namespace spillway
