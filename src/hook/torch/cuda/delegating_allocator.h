#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hook/torch/cuda/pytorch_cuda.h"

namespace spillway {

// An allocator that leaves everything to another one. Each function of PyTorch's interface is here, so one that a newer
// PyTorch demands is an error of the compiler. All versions' differences are here, too.
class DelegatingAllocator : public c10::cuda::CUDACachingAllocator::CUDAAllocator {
 protected:
  using Device = c10::DeviceIndex;
  using PoolId = c10::MempoolId_t;
  using Context = std::shared_ptr<c10::GatheredContext>;
  using CreateContext = c10::CachingDeviceAllocator::CreateContextFn;
  using RecordContext = c10::CachingDeviceAllocator::RecordContext;
  using TraceTracker = c10::CachingDeviceAllocator::AllocatorTraceTracker;
  using DeviceStats = c10::CachingDeviceAllocator::DeviceStats;
  using SnapshotInfo = c10::cuda::CUDACachingAllocator::SnapshotInfo;
  using OutOfMemoryObserver = c10::cuda::CUDACachingAllocator::OutOfMemoryObserver;
  using AllocatorState = c10::cuda::CUDACachingAllocator::AllocatorState;
  using CheckpointDelta = c10::cuda::CUDACachingAllocator::CheckpointDelta;
  using ShareableHandle = c10::cuda::CUDACachingAllocator::ShareableHandle;
  using StreamSegmentSize = c10::cuda::CUDACachingAllocator::StreamSegmentSize;

 public:
  explicit DelegatingAllocator(CUDAAllocator& native) : native_(native) {}

  // c10::Allocator
  c10::DataPtr allocate(std::size_t bytes) override { return native_.allocate(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return native_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { native_.copy_data(to, from, bytes); }

  // c10::DeviceAllocator
  bool initialized() override { return native_.initialized(); }
  void emptyCache(PoolId pool) override { native_.emptyCache(pool); }
  DeviceStats getDeviceStats(Device device) override { return native_.getDeviceStats(device); }
  void resetAccumulatedStats(Device device) override { native_.resetAccumulatedStats(device); }
  void resetPeakStats(Device device) override { native_.resetPeakStats(device); }
  // What the driver says, as torch.cuda.mem_get_info does, which asks no allocator: two answers would confuse.
  std::pair<std::size_t, std::size_t> getMemoryInfo(Device device) override { return native_.getMemoryInfo(device); }

  // c10::cuda::CUDACachingAllocator::CUDAAllocator
  void* raw_alloc(std::size_t bytes) override { return native_.raw_alloc(bytes); }
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override {
    return native_.raw_alloc_with_stream(bytes, stream);
  }
  void raw_delete(void* memory) override { native_.raw_delete(memory); }
  void init(int device_count) override { native_.init(device_count); }
  double getMemoryFraction(Device device) override { return native_.getMemoryFraction(device); }
  void setMemoryFraction(double fraction, Device device) override { native_.setMemoryFraction(fraction, device); }
  std::vector<StreamSegmentSize> getExpandableSegmentSizes(Device device) override {
    return native_.getExpandableSegmentSizes(device);
  }
  void enable(bool value) override { native_.enable(value); }
  bool isEnabled() const override { return native_.isEnabled(); }
  void cacheInfo(Device device, std::size_t* largest) override { native_.cacheInfo(device, largest); }
  void* getBaseAllocation(void* memory, std::size_t* bytes) override {
    return native_.getBaseAllocation(memory, bytes);
  }
  using CUDAAllocator::recordStream;  // that of a c10::Stream calls the next
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    native_.recordStream(data, stream);
  }
  SnapshotInfo snapshot(PoolId pool, bool include_traces) override { return native_.snapshot(pool, include_traces); }
  void beginAllocateToPool(Device device, PoolId pool, std::function<bool(cudaStream_t)> filter) override {
    native_.beginAllocateToPool(device, pool, std::move(filter));
  }
  void endAllocateToPool(Device device, PoolId pool) override { native_.endAllocateToPool(device, pool); }
  void releasePool(Device device, PoolId pool) override { native_.releasePool(device, pool); }
  int getPoolUseCount(Device device, PoolId pool) override { return native_.getPoolUseCount(device, pool); }
  void createOrIncrefPool(Device device, PoolId pool, std::shared_ptr<CUDAAllocator> allocator) override {
    native_.createOrIncrefPool(device, pool, std::move(allocator));
  }
  void setUseOnOOM(Device device, PoolId pool, bool use) override { native_.setUseOnOOM(device, pool, use); }
  void setNoSplit(Device device, PoolId pool) override { native_.setNoSplit(device, pool); }
  bool checkPoolLiveAllocations(Device device, PoolId pool, const std::unordered_set<void*>& expected) override {
    return native_.checkPoolLiveAllocations(device, pool, expected);
  }
  ShareableHandle shareIpcHandle(void* memory) override { return native_.shareIpcHandle(memory); }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override { return native_.getIpcDevPtr(std::move(handle)); }
  bool isHistoryEnabled() override { return native_.isHistoryEnabled(); }
  void recordHistory(bool enabled, CreateContext create, std::size_t most_entries, RecordContext when, bool clear,
                     const std::vector<std::string>& skipped) override {
    native_.recordHistory(enabled, create, most_entries, when, clear, skipped);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& annotation) override {
    native_.recordAnnotation(annotation);
  }
  void pushCompileContext(std::string& context) override { native_.pushCompileContext(context); }
  void popCompileContext() override { native_.popCompileContext(); }
  void setUserMetadata(const std::string& metadata) override { native_.setUserMetadata(metadata); }
  std::string getUserMetadata() override { return native_.getUserMetadata(); }
  void attachOutOfMemoryObserver(OutOfMemoryObserver observer) override {
    native_.attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(TraceTracker tracker) override {
    native_.attachAllocatorTraceTracker(std::move(tracker));
  }
  void enablePeerAccess(Device device, Device accessed) override { native_.enablePeerAccess(device, accessed); }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                          cudaStream_t stream, bool peers_may_access) override {
    return native_.memcpyAsync(to, to_device, from, from_device, bytes, stream, peers_may_access);
  }
  std::shared_ptr<AllocatorState> getCheckpointState(Device device, PoolId pool) override {
    return native_.getCheckpointState(device, pool);
  }
  CheckpointDelta setCheckpointPoolState(Device device, std::shared_ptr<AllocatorState> state) override {
    return native_.setCheckpointPoolState(device, std::move(state));
  }
  // "native" mostly. PyTorch and scripts take any other name for an allocator without CUDA graphs, pools and
  // statistics.
  std::string name() override { return native_.name(); }

#if SPILLWAY_TORCH_SINCE(12)
  Context getContextForPointer(const void* memory) override { return native_.getContextForPointer(memory); }
  void attachOomRejectionObserver(c10::cuda::CUDACachingAllocator::OomRejectionObserver observer) override {
    native_.attachOomRejectionObserver(std::move(observer));
  }
#else
  virtual Context getContextForPointer(const void*) { return nullptr; }
#endif
#if SPILLWAY_TORCH_SINCE(13)
  void markCaptureBegin(Device device) override { native_.markCaptureBegin(device); }
  void markCaptureEnd(Device device) override { native_.markCaptureEnd(device); }
  c10::DataPtr allocateWithAddress(std::size_t bytes, void* address) override {
    return native_.allocateWithAddress(bytes, address);
  }
#else
  virtual c10::DataPtr allocateWithAddress(std::size_t, void*) { return {}; }
#endif

 protected:
  CUDAAllocator& native() const { return native_; }

 private:
  CUDAAllocator& native_;
};

}  // namespace spillway
