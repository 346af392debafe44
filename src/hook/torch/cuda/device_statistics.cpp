#include "hook/torch/cuda/device_statistics.h"

#include <array>
#include <utility>

namespace spillway {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using Stats = DeviceStatistics::Stats;

constexpr auto kAggregate = static_cast<std::size_t>(StatType::AGGREGATE);

std::size_t pool_of(std::size_t bytes) {
  return static_cast<std::size_t>(DeviceStatistics::is_small(bytes) ? StatType::SMALL_POOL : StatType::LARGE_POOL);
}

void increase(StatArray& array, std::size_t pool, std::size_t amount) {
  for (const std::size_t type : {kAggregate, pool}) array[type].increase(amount);
}

void decrease(StatArray& array, std::size_t pool, std::size_t amount) {
  for (const std::size_t type : {kAggregate, pool}) array[type].decrease(amount);
}

void change_to(StatArray& array, std::size_t pool, std::size_t amount) {
  const auto before = static_cast<std::size_t>(array[pool].current);
  if (amount > before) increase(array, pool, amount - before);
  if (amount < before) decrease(array, pool, before - amount);
}

// All that are kept for each pool.
constexpr std::array kArrays{
    &Stats::allocation,      &Stats::segment,        &Stats::active,       &Stats::inactive_split,
    &Stats::allocated_bytes, &Stats::reserved_bytes, &Stats::active_bytes, &Stats::inactive_split_bytes,
    &Stats::requested_bytes};
constexpr std::array kSingles{&Stats::oversize_allocations, &Stats::oversize_segments};

void add(Stat& sum, const Stat& more) {
  sum.current += more.current;
  sum.peak += more.peak;
  sum.allocated += more.allocated;
  sum.freed += more.freed;
}

}  // namespace

void DeviceStatistics::born(std::size_t bytes) { count(bytes, increase); }
void DeviceStatistics::died(std::size_t bytes) { count(bytes, decrease); }

void DeviceStatistics::count(std::size_t bytes, Change change) {
  const std::size_t size = rounded(bytes), pool = pool_of(bytes);
  const MutexLock lock(mutex_);
  change(stats_.allocation, pool, 1);
  change(stats_.active, pool, 1);
  change(stats_.allocated_bytes, pool, size);
  change(stats_.active_bytes, pool, size);
  change(stats_.requested_bytes, pool, bytes);
  reserve(pool);
}

void DeviceStatistics::reserve(std::size_t pool) {
  const auto held = static_cast<std::size_t>(stats_.allocated_bytes[pool].current);
  const std::size_t segments = (held + kSegment - 1) / kSegment;
  change_to(stats_.segment, pool, segments);
  change_to(stats_.reserved_bytes, pool, segments * kSegment);
}

void DeviceStatistics::out_of_memory() {
  const MutexLock lock(mutex_);
  ++stats_.num_ooms;
}

Stats DeviceStatistics::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

DeviceStatistics::Held DeviceStatistics::held() const {
  const MutexLock lock(mutex_);
  return {.allocated = static_cast<std::size_t>(stats_.allocated_bytes[kAggregate].current),
          .reserved = static_cast<std::size_t>(stats_.reserved_bytes[kAggregate].current)};
}

void DeviceStatistics::reset_accumulated() {
  const MutexLock lock(mutex_);
  for (const auto array : kArrays)
    for (Stat& stat : stats_.*array) stat.reset_accumulated();
  stats_.num_ooms = 0;
}

void DeviceStatistics::reset_peaks() {
  const MutexLock lock(mutex_);
  for (const auto array : kArrays)
    for (Stat& stat : stats_.*array) stat.reset_peak();
}

void add_statistics(Stats& sum, const Stats& more) {
  for (const auto array : kArrays)
    for (std::size_t type = 0; type < (sum.*array).size(); ++type) add((sum.*array)[type], (more.*array)[type]);
  for (const auto single : kSingles) add(sum.*single, more.*single);
  sum.num_alloc_retries += more.num_alloc_retries;
  sum.num_ooms += more.num_ooms;
  sum.num_sync_all_streams += more.num_sync_all_streams;
  sum.num_device_alloc += more.num_device_alloc;
  sum.num_device_free += more.num_device_free;
}

}  // namespace spillway
