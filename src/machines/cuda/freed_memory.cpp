#include "machines/cuda/freed_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace spillway {

// So that there are no more than the heap has holes, and a few for each set of streams.
bool FreedMemory::join(Extent& first, const Extent& second) {
  if (!std::ranges::equal(first.uses, second.uses, {}, &StreamUse::stream, &StreamUse::stream)) return false;
  first.end = second.end;
  for (std::size_t at = 0; at < first.uses.size(); ++at)
    first.uses[at].launch = std::max(first.uses[at].launch, second.uses[at].launch);
  return true;
}

void FreedMemory::freed(std::uint64_t begin, Bytes bytes, std::vector<StreamUse> uses) {
  CHECK(bytes > Bytes{} && !uses.empty());
  std::ranges::sort(uses, {}, &StreamUse::stream);
  const auto [at, is_new] = extents_.emplace(begin, Extent{begin + bytes.value, std::move(uses)});
  CHECK(is_new);
  const auto next = std::next(at);
  CHECK(next == extents_.end() || at->second.end <= next->first);
  if (next != extents_.end() && at->second.end == next->first && join(at->second, next->second)) extents_.erase(next);
  if (at == extents_.begin()) return;
  const auto before = std::prev(at);
  CHECK(before->second.end <= begin);
  if (before->second.end == begin && join(before->second, at->second)) extents_.erase(at);
}

std::vector<StreamUse> FreedMemory::taken(std::uint64_t begin, Bytes bytes, std::uint32_t stream) {
  const std::uint64_t end = begin + bytes.value;
  std::vector<StreamUse> waits;
  auto at = extents_.upper_bound(begin);
  if (at != extents_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != extents_.end() && at->first < end) {
    const auto [first, extent] = std::pair(at->first, std::move(at->second));
    at = extents_.erase(at);
    for (const StreamUse& use : extent.uses) {
      if (use.stream == stream) continue;
      const auto known = std::ranges::find(waits, use.stream, &StreamUse::stream);
      if (known == waits.end())
        waits.push_back(use);
      else
        known->launch = std::max(known->launch, use.launch);
    }
    if (first < begin) extents_.emplace(first, Extent{begin, extent.uses});
    if (extent.end > end) extents_.emplace(end, Extent{extent.end, extent.uses});
  }
  return waits;
}

}  // namespace spillway
