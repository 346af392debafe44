#pragma once

#include <string>
#include <vector>

#include "base/mutex.h"
#include "hook/torch/cuda/delegating_allocator.h"
#include "hook/torch/cuda/device_statistics.h"
#include "hook/torch/cuda/live_tensors.h"
#include "hook/torch/cuda/pool_filters.h"
#include "hook/torch/cuda/pytorch_cuda.h"
#include "hook/torch/cuda/tensor_history.h"
#include "hook/torch/device_tensors.h"

namespace spillway {

// What the allocator asks CUDA for; tests have no GPU.
struct CudaCalls {
  c10::DeviceIndex (*current_device)();
  cudaStream_t (*current_stream)(c10::DeviceIndex);
  cudaStream_t (*handle)(c10::cuda::CUDAStream);
  cudaError_t (*copy_between_devices)(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                      cudaStream_t stream);
};
extern const CudaCalls kCudaCalls;

// PyTorch's allocator of GPUs: gives the tensors of one GPU addresses in managed memory. The allocator that PyTorch had
// before, the native one, serves what must not move or has an owner of its own: CUDA graphs, memory pools, other GPUs.
//
// One a process, since deleters know no other, and it is never destroyed. Any thread. No lock of ours is held while
// DeviceTensors, the interpreter or the native allocator is called.
class CudaAllocator final : public DelegatingAllocator {
 public:
  CudaAllocator(CUDAAllocator& native, DeviceTensors& tensors, const CudaCalls& cuda);
  ~CudaAllocator() override;  // in tests

  // A DataPtr's context is its data and its deleter is raw_deleter(), whoever serves it: PyTorch's CUDA graphs rely on
  // it.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void* raw_alloc(std::size_t bytes) override;
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override;
  void raw_delete(void* memory) override;
  void delete_allocated(void* memory);  // what allocate() has given
  using DelegatingAllocator::recordStream;
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override;

  void beginAllocateToPool(Device device, PoolId pool, std::function<bool(cudaStream_t)> filter) override;
  void endAllocateToPool(Device device, PoolId pool) override;
  CheckpointDelta setCheckpointPoolState(Device device, std::shared_ptr<AllocatorState> state) override;
  c10::DataPtr allocateWithAddress(std::size_t bytes, void* address) override;

  DeviceStats getDeviceStats(Device device) override;
  void resetAccumulatedStats(Device device) override;
  void resetPeakStats(Device device) override;
  void cacheInfo(Device device, std::size_t* largest) override;
  void* getBaseAllocation(void* memory, std::size_t* bytes) override;
  void attachOutOfMemoryObserver(OutOfMemoryObserver observer) override;

  SnapshotInfo snapshot(PoolId pool, bool include_traces) override;
  void recordHistory(bool enabled, CreateContext create, std::size_t most_entries, RecordContext when, bool clear,
                     const std::vector<std::string>& skipped) override;
  void attachAllocatorTraceTracker(TraceTracker tracker) override;
  Context getContextForPointer(const void* memory) override;

  ShareableHandle shareIpcHandle(void* memory) override;
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                          cudaStream_t stream, bool peers_may_access) override;

 private:
  Device device() const { return static_cast<Device>(tensors_.device_index()); }
  bool is_disabled() const;
  bool serves(Device current, cudaStream_t stream) const;
  void* make(std::size_t bytes, cudaStream_t stream);
  void end(void* memory);
  c10::DataPtr adopted(c10::DataPtr of_native) const;
  void tell_out_of_memory(std::size_t bytes, cudaStream_t stream, Context context);
  void tell_profiler(void* memory, std::int64_t change);
  void remember(TensorHistory::Action action, std::size_t address, const LiveTensor& tensor, Context context);

  DeviceTensors& tensors_;
  const CudaCalls cuda_;
  const c10::DeleterFnPtr native_deleter_;
  const bool native_never_caches_;
  LiveTensors live_;
  DeviceStatistics statistics_;
  TensorHistory history_;
  PoolFilters pools_;
  Mutex observers_mutex_;
  std::vector<OutOfMemoryObserver> observers_ SPILLWAY_GUARDED_BY(observers_mutex_);
};

}  // namespace spillway
