#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "hook/torch/cuda/pytorch_cuda.h"

namespace spillway {

// Which allocations a pool of PyTorch's (a CUDA graph's, a torch.cuda.MemPool) wants to have. A filter looks at the
// stream, or at the thread that asks. Any thread.
class PoolFilters {
 public:
  using Filter = std::function<bool(cudaStream_t)>;

  void begin(c10::MempoolId_t pool, Filter filter) {
    const MutexLock lock(mutex_);
    active_.emplace_back(pool, std::move(filter));
    count_.store(active_.size(), std::memory_order_release);
  }
  void end(c10::MempoolId_t pool) {
    const MutexLock lock(mutex_);
    const auto is_it = [&](const auto& active) { return active.first == pool; };
    if (const auto found = std::ranges::find_if(active_, is_it); found != active_.end()) active_.erase(found);
    count_.store(active_.size(), std::memory_order_release);
  }
  bool want(cudaStream_t stream) const {
    if (count_.load(std::memory_order_acquire) == 0) return false;  // nearly always
    const MutexLock lock(mutex_);
    return std::ranges::any_of(active_, [&](const auto& active) { return active.second(stream); });
  }

 private:
  std::atomic<std::size_t> count_{0};
  mutable Mutex mutex_;
  std::vector<std::pair<c10::MempoolId_t, Filter>> active_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
