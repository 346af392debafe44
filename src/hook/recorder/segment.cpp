#include "hook/recorder/segment.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {

std::uint32_t SegmentBuilder::index_of(const SegmentStorage& storage) {
  const auto [place, is_new] = indices_.try_emplace(storage.id, static_cast<std::uint32_t>(segment_.storages.size()));
  if (is_new) segment_.storages.push_back(storage);
  return place->second;
}

void SegmentBuilder::add(const KernelEvent& event, Nanos gap,
                         const std::unordered_map<StorageId, SegmentStorage>& live) {
  if (++segment_.kernels_seen > most_) {
    segment_.kernels = {};
    segment_.storages = {};
    indices_ = {};
    return;
  }
  SegmentKernel& kernel = segment_.kernels.emplace_back();
  kernel.name = event.name;
  kernel.phase = event.phase;
  kernel.updates = event.updates;
  kernel.shapes = event.shapes;
  kernel.duration = event.duration();
  kernel.gap = gap;
  kernel.accesses.reserve(event.touches.size());
  for (const Touch& touch : event.touches) {
    const auto known = live.find(touch.storage);
    if (known == live.end()) continue;  // freed meanwhile by another thread
    kernel.accesses.push_back({.storage = index_of(known->second),
                               .begin = touch.begin,
                               .end = std::min(touch.end, known->second.bytes),
                               .reads = touch.reads,
                               .writes = touch.writes,
                               .sparse = touch.sparse});
    if (touch.writes && event.updates && known->second.birth_segment != segment_.number)
      insert_ascending(segment_.updates, {touch.storage, touch.begin});
  }
  for (const Birth& birth : event.births)
    kernel.births.push_back(
        index_of({.id = birth.storage, .bytes = birth.bytes, .birth_segment = segment_.number, .label = birth.label}));
  for (const StorageId death : event.deaths)
    if (const auto known = live.find(death); known != live.end()) kernel.frees.push_back(index_of(known->second));
}

void SegmentBuilder::died(const SegmentStorage& storage) {
  CHECK(!empty());
  // Made by something that is no kernel, and used by none.
  if (storage.birth_segment >= segment_.number && !indices_.contains(storage.id)) return;
  segment_.kernels.back().frees.push_back(index_of(storage));
}

std::size_t idle_prefix(const Segment& segment) {
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> last_use(segment.storages.size(), kNever);
  for (std::size_t k = 0; k < segment.kernels.size(); ++k) {
    for (const SegmentAccess& access : segment.kernels[k].accesses) last_use[access.storage] = k;
    for (const std::uint32_t birth : segment.kernels[k].births) last_use[birth] = k;
  }
  std::size_t prefix = 0;
  std::size_t needed_until = 0;  // the last kernel that uses what the kernels so far made
  for (std::size_t k = 0; k < segment.kernels.size(); ++k) {
    const SegmentKernel& kernel = segment.kernels[k];
    for (const SegmentAccess& access : kernel.accesses) {
      if (segment.born_here(access.storage))
        needed_until = std::max(needed_until, last_use[access.storage]);
      else if (access.writes)
        return prefix;
    }
    for (const std::uint32_t birth : kernel.births) needed_until = std::max(needed_until, last_use[birth]);
    if (kernel.phase != Phase::forward) return prefix;
    if (needed_until <= k && k + 1 < segment.kernels.size()) prefix = k + 1;
  }
  return prefix;
}

std::uint64_t hash_of_operators(const Segment& segment) {
  std::uint64_t hash = segment.kernels.size();
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for (const SegmentKernel& kernel : segment.kernels) {
    mix(std::hash<std::string_view>{}(kernel.name));
    mix(static_cast<std::uint64_t>(kernel.phase));
    mix(kernel.shapes);
    mix(kernel.accesses.size());
    for (const std::uint32_t birth : kernel.births) mix(segment.storages[birth].bytes.value);
  }
  return hash;
}

std::vector<SegmentStorage> drop_prefix(Segment& segment, std::size_t count) {
  std::vector<bool> made(segment.storages.size(), false);
  std::vector<SegmentStorage> died;
  for (std::size_t k = 0; k < count; ++k) {
    for (const std::uint32_t birth : segment.kernels[k].births) made[birth] = true;
    for (const SegmentAccess& access : segment.kernels[k].accesses)
      if (segment.born_here(access.storage)) made[access.storage] = true;
    for (const std::uint32_t freed : segment.kernels[k].frees)
      if (!segment.born_here(freed)) died.push_back(segment.storages[freed]);
  }
  segment.kernels.erase(segment.kernels.begin(), segment.kernels.begin() + static_cast<std::ptrdiff_t>(count));
  for (SegmentKernel& kernel : segment.kernels)
    std::erase_if(kernel.frees, [&](std::uint32_t freed) { return made[freed]; });
  return died;
}

}  // namespace spillway
