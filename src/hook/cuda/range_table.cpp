#include "hook/cuda/range_table.h"

#include <algorithm>
#include <iterator>

namespace spillway {
namespace {

bool holds(const CudaRange& range, std::uint64_t address) { return address - range.begin < range.bytes; }

constexpr auto begins_after = [](std::uint64_t address, const CudaRange& range) { return address < range.begin; };

}  // namespace

bool RangeTable::add(const CudaRange& range) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << kAddressBits;
  if (range.bytes == 0 || range.begin >= kEnd || range.bytes > kEnd - range.begin) return false;
  bool is_free = true;
  for_each_in(range.begin, range.bytes, [&](const CudaRange&) { is_free = false; });
  if (!is_free) return false;
  auto& here = make_granule(range.begin).begin_here;
  here.insert(std::upper_bound(here.begin(), here.end(), range.begin, begins_after), range);
  cover(range, range);
  const std::uint64_t lowest = extent_ == 0 ? range.begin : std::min(lowest_, range.begin);
  extent_ = std::max(lowest_ + extent_, range.begin + range.bytes) - lowest;
  lowest_ = lowest;
  return true;
}

bool RangeTable::remove(std::uint64_t begin) {
  const CudaRange* found = find(begin);
  if (found == nullptr || found->begin != begin) return false;
  const CudaRange range = *found;
  auto& here = make_granule(begin).begin_here;
  here.erase(std::prev(std::upper_bound(here.begin(), here.end(), begin, begins_after)));
  cover(range, {});
  return true;
}

void RangeTable::cover(const CudaRange& range, const CudaRange& with) {
  const std::uint64_t last = (range.begin + range.bytes - 1) >> kGranuleBits;
  for (std::uint64_t number = (range.begin >> kGranuleBits) + 1; number <= last; ++number)
    make_granule(number << kGranuleBits).from_before = with;
}

const RangeTable::Granule* RangeTable::granule(std::uint64_t address) const noexcept {
  const auto& leaf = leaves_[address >> kLeafBits];
  return leaf == nullptr ? nullptr : &(*leaf)[(address >> kGranuleBits) % std::tuple_size_v<Leaf>];
}

RangeTable::Granule& RangeTable::make_granule(std::uint64_t address) {
  auto& leaf = leaves_[address >> kLeafBits];
  if (leaf == nullptr) leaf = std::make_unique<Leaf>();
  return (*leaf)[(address >> kGranuleBits) % std::tuple_size_v<Leaf>];
}

const CudaRange* RangeTable::find_in_granule(std::uint64_t address) const noexcept {
  const Granule* found = granule(address);
  if (found == nullptr) return nullptr;
  if (holds(found->from_before, address)) return &found->from_before;
  const auto& here = found->begin_here;
  const auto after = std::upper_bound(here.begin(), here.end(), address, begins_after);
  return after != here.begin() && holds(*std::prev(after), address) ? &*std::prev(after) : nullptr;
}

const CudaRange* RangeTable::next_after(std::uint64_t address, std::uint64_t end) const noexcept {
  end = std::min(end, lowest_ + extent_);
  address = std::max(address, lowest_ - (lowest_ > 0));
  while (address < end) {
    const Granule* here = granule(address);
    if (here != nullptr) {
      const auto after = std::upper_bound(here->begin_here.begin(), here->begin_here.end(), address, begins_after);
      if (after != here->begin_here.end()) return after->begin < end ? &*after : nullptr;
    }
    // On to the next granule, or leaf where there is none.
    const unsigned step = here == nullptr ? kLeafBits : kGranuleBits;
    address = ((address >> step) + 1) << step;
    if (address >= end) break;
    if (const CudaRange* first = find(address); first != nullptr && first->begin == address) return first;
  }
  return nullptr;
}

}  // namespace spillway
