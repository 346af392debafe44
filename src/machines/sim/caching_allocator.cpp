#include "machines/sim/caching_allocator.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace spillway {
namespace {

constexpr std::uint64_t kSmallest = 512;
constexpr std::uint64_t kMostSmall = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmallSegment = std::uint64_t{2} << 20;
constexpr std::uint64_t kLargeSegment = std::uint64_t{20} << 20;
constexpr std::uint64_t kLeastOwnSegment = std::uint64_t{10} << 20;  // Such a request gets one of its own size.

std::uint64_t up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

std::uint64_t segment_for(std::uint64_t size) {
  if (size <= kMostSmall) return kSmallSegment;
  return size < kLeastOwnSegment ? kLargeSegment : up(size, kSmallSegment);
}

}  // namespace

std::uint64_t CachingAllocator::allocate(Bytes bytes) {
  const std::uint64_t size = up(std::max<std::uint64_t>(bytes.value, 1), kSmallest);
  const bool is_small = size <= kMostSmall;
  auto& pool = free_[is_small ? 0 : 1];
  auto fits = pool.lower_bound({size, 0});
  if (fits == pool.end()) {
    const Part segment{{segment_for(size)}, reserved_.value, is_small, true};
    parts_.emplace(reserved_.value, segment);
    fits = pool.emplace(segment.size.value, reserved_.value).first;
    reserved_ += segment.size;
  }
  const std::uint64_t address = fits->second;
  pool.erase(fits);
  Part& part = parts_.at(address);
  const std::uint64_t left = part.size.value - size;
  if (is_small ? left >= kSmallest : left > kMostSmall) {
    parts_.emplace(address + size, Part{{left}, part.segment, is_small, true});
    pool.emplace(left, address + size);
    part.size.value = size;
  }
  part.is_free = false;
  return address;
}

void CachingAllocator::free(std::uint64_t address) {
  auto part = parts_.find(address);
  CHECK(part != parts_.end() && !part->second.is_free);
  part->second.is_free = true;
  auto& pool = free_[part->second.is_small ? 0 : 1];
  const auto joins = [&](Parts::iterator other) {
    if (!other->second.is_free || other->second.segment != part->second.segment) return false;
    pool.erase({other->second.size.value, other->first});
    return true;
  };
  if (const auto next = std::next(part); next != parts_.end() && joins(next)) {
    part->second.size += next->second.size;
    parts_.erase(next);
  }
  if (part != parts_.begin() && joins(std::prev(part))) {
    const auto before = std::prev(part);
    before->second.size += part->second.size;
    parts_.erase(part);
    part = before;
  }
  pool.emplace(part->second.size.value, part->first);
}

}  // namespace spillway
