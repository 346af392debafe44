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
  spare_sizes_.put(by_size_, hole);
  spare_offsets_.put(by_offset_, hole.offset)->second = hole.bytes;
  CHECK(by_size_.size() == by_offset_.size());  // It was in neither.
  free_ += Bytes{hole.bytes};
}

void AddressSpace::remove(Hole hole) {
  const auto size = by_size_.find(hole);
  const auto offset = by_offset_.find(hole.offset);
  CHECK(size != by_size_.end() && offset != by_offset_.end());
  spare_sizes_.erase(by_size_, size);
  spare_offsets_.erase(by_offset_, offset);
  free_ -= Bytes{hole.bytes};
}

}  // namespace spillway
