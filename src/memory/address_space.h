#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/spare_nodes.h"
#include "base/units.h"

namespace spillway {

// Hands out parts of [0, size) by best fit: the smallest hole that is large enough, the lowest of equal ones. A program
// that repeats itself gets the same addresses again. A plain value; offsets only, no memory.
class AddressSpace {
 public:
  AddressSpace(Bytes size, Bytes granule);

  // Rounded up to whole granules; nothing if no hole is large enough.
  std::optional<std::uint64_t> take(Bytes bytes);
  // The very offset and bytes that were taken.
  void give_back(std::uint64_t offset, Bytes bytes);

 private:
  struct Hole {
    std::uint64_t bytes, offset;
    friend auto operator<=>(const Hole&, const Hole&) = default;
  };
  std::uint64_t rounded(Bytes bytes) const { return (bytes.value + granule_ - 1) / granule_ * granule_; }
  void add(Hole hole);
  void remove(Hole hole);

  std::uint64_t granule_;
  Bytes free_;
  std::set<Hole> by_size_;
  std::map<std::uint64_t, std::uint64_t> by_offset_;  // offset -> bytes
  SpareNodes<std::set<Hole>> spare_sizes_;
  SpareNodes<std::map<std::uint64_t, std::uint64_t>> spare_offsets_;
};

}  // namespace spillway
