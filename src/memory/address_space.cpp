#include "memory/address_space.h"

#include <iterator>

#include "base/check.h"

namespace spillway {

AddressSpace::AddressSpace(Bytes size, Bytes granule) : granule_(granule.value) {
  CHECK(granule_ > 0 && size.value % granule_ == 0);
  if (size > Bytes{}) add({size.value, 0});
}

std::optional<std::uint64_t> AddressSpace::take(Bytes bytes) {
  CHECK(bytes > Bytes{});
  if (bytes > free_) return std::nullopt;  // Before rounding, which could overflow.
  const std::uint64_t wanted = rounded(bytes);
  const auto found = by_size_.lower_bound({wanted, 0});
  if (found == by_size_.end()) return std::nullopt;
  const Hole hole = *found;
  remove(hole);
  if (hole.bytes > wanted) add({hole.bytes - wanted, hole.offset + wanted});
  return hole.offset;
}

void AddressSpace::give_back(std::uint64_t offset, Bytes bytes) {
  CHECK(bytes > Bytes{} && offset % granule_ == 0);
  Hole hole{rounded(bytes), offset};
  const auto after = by_offset_.lower_bound(offset);
  CHECK(after == by_offset_.end() || offset + hole.bytes <= after->first);
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    CHECK(before->first + before->second <= offset);
    if (before->first + before->second == offset) {
      const Hole neighbour{before->second, before->first};
      hole = {hole.bytes + neighbour.bytes, neighbour.offset};
      remove(neighbour);
    }
  }
  if (const auto next = by_offset_.lower_bound(offset);
      next != by_offset_.end() && hole.offset + hole.bytes == next->first) {
    const Hole neighbour{next->second, next->first};
    hole.bytes += neighbour.bytes;
    remove(neighbour);
  }
  add(hole);
}

void AddressSpace::add(Hole hole) {
  CHECK(by_size_.insert(hole).second && by_offset_.emplace(hole.offset, hole.bytes).second);
  free_ += Bytes{hole.bytes};
}

void AddressSpace::remove(Hole hole) {
  CHECK(by_size_.erase(hole) == 1 && by_offset_.erase(hole.offset) == 1);
  free_ -= Bytes{hole.bytes};
}

}  // namespace spillway
