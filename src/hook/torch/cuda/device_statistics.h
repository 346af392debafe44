#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "hook/torch/cuda/pytorch_cuda.h"

namespace spillway {

// What torch.cuda.memory_stats tells of our tensors, with the meanings that it has for PyTorch's own allocator:
// - A tensor counts as whole steps of 512 bytes; `requested_bytes` is what was asked for.
// - Up to 1 MiB it belongs to the small pool, else to the large one.
// - `reserved_bytes` is what a pool's tensors hold together, in whole segments of 2 MiB: we keep no memory for later.
// - A tensor is active until it is freed, also where another stream still uses it: we are not told when that ends.
//
// Any thread.
class DeviceStatistics {
 public:
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  static constexpr std::size_t kStep = 512;
  static constexpr std::size_t kLargestSmall = std::size_t{1} << 20;
  static constexpr std::size_t kSegment = std::size_t{2} << 20;
  static constexpr std::size_t rounded(std::size_t bytes) {
    return bytes < kStep ? kStep : (bytes + kStep - 1) / kStep * kStep;
  }
  static constexpr bool is_small(std::size_t bytes) { return rounded(bytes) <= kLargestSmall; }

  void born(std::size_t bytes);  // as requested
  void died(std::size_t bytes);  // as when it was born
  void out_of_memory();

  Stats stats() const;
  struct Held {
    std::size_t allocated, reserved;
  };
  Held held() const;  // by all tensors

  void reset_accumulated();
  void reset_peaks();

 private:
  using Change = void (*)(c10::CachingAllocator::StatArray&, std::size_t pool, std::size_t amount);
  void count(std::size_t bytes, Change change) SPILLWAY_EXCLUDES(mutex_);
  void reserve(std::size_t pool) SPILLWAY_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Stats stats_ SPILLWAY_GUARDED_BY(mutex_);
};

// To the statistics of one allocator those of another. Their peaks may have been at two times: their sum is the most
// that the peak of both together can have been.
void add_statistics(c10::CachingDeviceAllocator::DeviceStats& sum,
                    const c10::CachingDeviceAllocator::DeviceStats& more);

}  // namespace spillway
