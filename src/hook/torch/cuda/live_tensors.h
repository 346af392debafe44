#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "hook/torch/cuda/pytorch_cuda.h"

namespace spillway {

// One of our tensors, for PyTorch's questions about it.
struct LiveTensor {
  std::size_t bytes = 0;  // as requested
  cudaStream_t stream = nullptr;
  std::shared_ptr<c10::GatheredContext> context;  // where the script made it, if that is recorded
};

// All that live, by address. Any thread.
class LiveTensors {
 public:
  void add(void* memory, LiveTensor tensor) {
    const MutexLock lock(mutex_);
    CHECK(tensors_.emplace(memory, std::move(tensor)).second);
  }
  // Nullopt: none begins there.
  std::optional<LiveTensor> remove(void* memory) {
    const MutexLock lock(mutex_);
    auto node = tensors_.extract(memory);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }
  std::optional<LiveTensor> find(const void* memory) const {
    const MutexLock lock(mutex_);
    const auto found = tensors_.find(memory);
    if (found == tensors_.end()) return std::nullopt;
    return found->second;
  }
  std::vector<std::pair<const void*, LiveTensor>> all() const {
    const MutexLock lock(mutex_);
    return {tensors_.begin(), tensors_.end()};
  }

 private:
  mutable Mutex mutex_;
  std::unordered_map<const void*, LiveTensor> tensors_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
