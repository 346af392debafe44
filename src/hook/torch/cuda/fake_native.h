#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hook/torch/cuda/delegating_allocator.h"
#include "hook/torch/cuda/device_statistics.h"

namespace spillway {

// A stream that was made without PyTorch, as all are in tests: PyTorch itself asks a GPU before it says so.
inline cudaStream_t handle_of(c10::cuda::CUDAStream stream) { return reinterpret_cast<cudaStream_t>(stream.id()); }

// In place of PyTorch's allocator, which asks a GPU about itself before it does anything. For tests; one thread, and
// one at a time.
class FakeNative final : public DelegatingAllocator {
 public:
  FakeNative() : DelegatingAllocator(*c10::cuda::CUDACachingAllocator::get()) { the_fake = this; }

  c10::DataPtr allocate(std::size_t bytes) override {
    made.push_back(bytes);
    return {&cell_, &cell_, raw_deleter(), c10::Device(c10::DeviceType::CUDA, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return isEnabled() ? &delete_cached : &delete_uncached; }
  void* raw_alloc(std::size_t bytes) override {
    made.push_back(bytes);
    return &cell_;
  }
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t) override { return raw_alloc(bytes); }
  void raw_delete(void* memory) override { raw_deleted.push_back(memory); }
  void enable(bool value) override { enabled = value; }
  bool isEnabled() const override { return enabled; }
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    if (data.get_deleter() == raw_deleter()) recorded.emplace_back(data.get(), handle_of(stream));
  }
  void beginAllocateToPool(Device, PoolId pool, std::function<bool(cudaStream_t)>) override {
    TORCH_CHECK(std::ranges::count(pools, pool) == 0, "already recording");
    pools.push_back(pool);
  }
  void endAllocateToPool(Device, PoolId pool) override { TORCH_CHECK(std::erase(pools, pool) == 1, "not recording"); }
  CheckpointDelta setCheckpointPoolState(Device, std::shared_ptr<AllocatorState>) override {
    CheckpointDelta delta;
    delta.dataptrs_allocd.push_back(allocate(1));
    return delta;
  }
  DeviceStats getDeviceStats(Device) override { return statistics.stats(); }
  void resetAccumulatedStats(Device) override { statistics.reset_accumulated(); }
  void resetPeakStats(Device) override { statistics.reset_peaks(); }
  void cacheInfo(Device, std::size_t* largest) override { *largest = 1; }
  void* getBaseAllocation(void*, std::size_t*) override { return &cell_; }
  SnapshotInfo snapshot(PoolId, bool) override { return given_snapshot; }
  void recordHistory(bool on, CreateContext, std::size_t, RecordContext, bool,
                     const std::vector<std::string>&) override {
    records_history = on;
  }
  void attachOutOfMemoryObserver(OutOfMemoryObserver) override { ++attached; }
  void attachAllocatorTraceTracker(TraceTracker) override { ++attached; }
  Context getContextForPointer(const void*) override { return nullptr; }
  void setUserMetadata(const std::string& metadata) override { metadata_ = metadata; }
  std::string getUserMetadata() override { return metadata_; }
  ShareableHandle shareIpcHandle(void*) override { return {0, "native's"}; }
  cudaError_t memcpyAsync(void*, int, const void*, int, std::size_t, cudaStream_t, bool) override {
    return cudaErrorUnknown;
  }

  DeviceStatistics statistics;  // of every device
  SnapshotInfo given_snapshot;
  std::vector<std::size_t> made;
  std::vector<void*> deleted, raw_deleted;
  std::vector<std::pair<void*, cudaStream_t>> recorded;
  std::vector<PoolId> pools;
  int attached = 0;
  bool enabled = true;
  bool records_history = false;
  std::size_t uncached_deleted = 0;

 private:
  static void delete_cached(void* memory) { the_fake->deleted.push_back(memory); }
  static void delete_uncached(void*) { ++the_fake->uncached_deleted; }
  static inline FakeNative* the_fake = nullptr;
  std::byte cell_{};
  std::string metadata_;
};

}  // namespace spillway
