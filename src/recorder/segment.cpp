#include "recorder/segment.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

constexpr Bytes kMuch = 8_MiB;  // A plan that does not know of less is as good.

}  // namespace

void SegmentBuilder::expect(const Segment& before) {
  segment_.kernels.reserve(before.kernels.size());
  segment_.storages.reserve(before.storages.size());
  segment_.accesses.reserve(before.accesses.size());
  segment_.births.reserve(before.births.size());
  segment_.frees.reserve(before.frees.size());
}

std::uint32_t SegmentBuilder::index_of(LiveStorage& storage) {
  if (storage.listed_by == segment_.number) return storage.index;
  storage.listed_by = segment_.number;
  storage.index = static_cast<std::uint32_t>(segment_.storages.size());
  segment_.storages.push_back(storage.storage);
  return storage.index;
}

void SegmentBuilder::add(const KernelEvent& event, Nanos gap, LiveStorages& live) {
  if (++segment_.kernels_seen > most_) {
    Segment without_kernels;
    without_kernels.number = segment_.number;
    without_kernels.kernels_seen = segment_.kernels_seen;
    without_kernels.updates = std::move(segment_.updates);
    segment_ = std::move(without_kernels);  // And with the memory.
    return;
  }
  const auto begin_of = [](const auto& all) { return static_cast<std::uint32_t>(all.size()); };
  SegmentKernel kernel{.name = event.name,
                       .phase = event.phase,
                       .updates = event.updates,
                       .replayable = event.replayable,
                       .shapes = event.shapes,
                       .shape_list = event.shape_list,
                       .duration = event.duration(),
                       .gap = gap,
                       .on_device = event.on_device,
                       .accesses = {.begin = begin_of(segment_.accesses)},
                       .births = {.begin = begin_of(segment_.births)},
                       .frees = {.begin = begin_of(segment_.frees)}};
  for (const Touch& touch : event.touches) {
    const auto known = live.find(touch.storage);
    if (known == live.end()) continue;  // freed meanwhile by another thread
    const SegmentStorage& storage = known->second.storage;
    segment_.accesses.push_back({.storage = index_of(known->second),
                                 .begin = touch.begin,
                                 .end = std::min(touch.end, storage.bytes),
                                 .reads = touch.reads,
                                 .writes = touch.writes,
                                 .sparse = touch.sparse,
                                 .statistic = touch.statistic});
    if (touch.writes && event.updates && storage.birth_segment != segment_.number)
      insert_ascending(segment_.updates, {touch.storage, touch.begin});
  }
  for (const Birth& birth : event.births)
    if (const auto known = live.find(birth.storage); known != live.end())
      segment_.births.push_back(index_of(known->second));
  for (const StorageId death : event.deaths)
    if (const auto known = live.find(death); known != live.end()) segment_.frees.push_back(index_of(known->second));
  kernel.accesses.end = begin_of(segment_.accesses);
  kernel.births.end = begin_of(segment_.births);
  kernel.frees.end = begin_of(segment_.frees);
  segment_.kernels.push_back(kernel);
}

void SegmentBuilder::written_outside(const LiveStorage& storage) {
  const bool is_listed = storage.listed_by == segment_.number && storage.index < segment_.storages.size();
  if (is_listed) segment_.storages[storage.index].written_outside = true;
}

void SegmentBuilder::died(LiveStorage& storage) {
  CHECK(!empty());
  // Made by something that is no kernel, and used by none.
  if (storage.storage.birth_segment >= segment_.number && storage.listed_by != segment_.number) return;
  segment_.freed_at_the_end(index_of(storage));
}

std::size_t idle_prefix(const Segment& segment) {
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> last_use(segment.storages.size(), kNever);
  for (std::size_t k = 0; k < segment.kernels.size(); ++k) {
    for (const SegmentAccess& access : segment.accesses_of(segment.kernels[k])) last_use[access.storage] = k;
    for (const std::uint32_t birth : segment.births_of(segment.kernels[k])) last_use[birth] = k;
  }
  std::vector<bool> dies(segment.storages.size(), false);
  for (const std::uint32_t freed : segment.frees) dies[freed] = true;
  std::size_t prefix = 0, without_survivors = 0;
  std::size_t needed_until = 0;  // the last kernel that uses what the kernels so far made
  Bytes survivors, in_prefix;    // of what they made
  const auto writes_from_before = [&](const SegmentKernel& kernel) {
    return std::ranges::any_of(segment.accesses_of(kernel), [&](const SegmentAccess& access) {
      return access.writes && !segment.born_here(access.storage);
    });
  };
  for (std::size_t k = 0; k + 1 < segment.kernels.size(); ++k) {
    const SegmentKernel& kernel = segment.kernels[k];
    if (kernel.phase != Phase::forward || writes_from_before(kernel)) break;
    for (const SegmentAccess& access : segment.accesses_of(kernel))
      if (segment.born_here(access.storage)) needed_until = std::max(needed_until, last_use[access.storage]);
    for (const std::uint32_t birth : segment.births_of(kernel)) {
      needed_until = std::max(needed_until, last_use[birth]);
      if (!dies[birth]) survivors += segment.storages[birth].bytes;
    }
    if (needed_until > k) continue;
    prefix = k + 1;
    in_prefix = survivors;
    if (survivors == Bytes{}) without_survivors = prefix;
  }
  return in_prefix < kMuch ? prefix : without_survivors;
}

void check_segment(const Segment& segment) {
  Slice accesses, births, frees;  // so far
  const auto goes_on = [](Slice& all, const Slice& next) {
    CHECK(next.begin == all.end && next.begin <= next.end);
    all.end = next.end;
  };
  for (const SegmentKernel& kernel : segment.kernels) {
    goes_on(accesses, kernel.accesses);
    goes_on(births, kernel.births);
    goes_on(frees, kernel.frees);
  }
  CHECK(accesses.end == segment.accesses.size());
  CHECK(births.end == segment.births.size());
  CHECK(frees.end == segment.frees.size());
  const auto is_there = [&](std::uint32_t storage) { return storage < segment.storages.size(); };
  CHECK(std::ranges::all_of(segment.accesses, is_there, &SegmentAccess::storage));
  CHECK(std::ranges::all_of(segment.births, is_there) && std::ranges::all_of(segment.frees, is_there));
  CHECK(std::ranges::is_sorted(segment.updates));
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
    mix(kernel.accesses.end - kernel.accesses.begin);
    for (const std::uint32_t birth : segment.births_of(kernel)) mix(segment.storages[birth].bytes.value);
  }
  return hash;
}

std::vector<SegmentStorage> drop_prefix(Segment& segment, std::size_t count) {
  CHECK(count < segment.kernels.size());
  std::vector<bool> made(segment.storages.size(), false);
  std::vector<SegmentStorage> died;
  for (std::size_t k = 0; k < count; ++k) {
    for (const std::uint32_t birth : segment.births_of(segment.kernels[k])) made[birth] = true;
    for (const SegmentAccess& access : segment.accesses_of(segment.kernels[k]))
      if (segment.born_here(access.storage)) made[access.storage] = true;
    for (const std::uint32_t freed : segment.frees_of(segment.kernels[k]))
      if (!segment.born_here(freed)) died.push_back(segment.storages[freed]);
  }
  segment.kernels.erase(segment.kernels.begin(), segment.kernels.begin() + static_cast<std::ptrdiff_t>(count));
  const auto drop = [&](auto& all, Slice SegmentKernel::* part) {
    const std::uint32_t begin = (segment.kernels.front().*part).begin;
    all.erase(all.begin(), all.begin() + begin);
    for (SegmentKernel& kernel : segment.kernels) {
      (kernel.*part).begin -= begin;
      (kernel.*part).end -= begin;
    }
  };
  drop(segment.accesses, &SegmentKernel::accesses);
  drop(segment.births, &SegmentKernel::births);
  std::vector<std::uint32_t> frees;
  for (SegmentKernel& kernel : segment.kernels) {
    const auto begin = static_cast<std::uint32_t>(frees.size());
    std::ranges::copy_if(segment.frees_of(kernel), std::back_inserter(frees),
                         [&](std::uint32_t freed) { return !made[freed]; });
    kernel.frees = {.begin = begin, .end = static_cast<std::uint32_t>(frees.size())};
  }
  segment.frees = std::move(frees);
  segment.kernels.shrink_to_fit();  // An evaluation may have had many times as much, and segments are kept.
  segment.accesses.shrink_to_fit();
  segment.births.shrink_to_fit();
  return died;
}

}  // namespace spillway
