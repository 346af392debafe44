// What CudaAllocator answers about its tensors.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>

#include "hook/torch/cuda/cuda_allocator.h"

namespace spillway {
namespace {

using Segment = c10::CachingDeviceAllocator::SegmentInfo;
using Entry = TensorHistory::Entry;

// Each tensor is a segment of its own: what else lies around it changes, and memory_viz draws it either way.
Segment segment_of(const void* memory, const LiveTensor& tensor, c10::DeviceIndex device) {
  Segment segment;
  segment.device = device;
  segment.address = reinterpret_cast<std::size_t>(memory);
  segment.total_size = segment.allocated_size = segment.active_size = DeviceStatistics::rounded(tensor.bytes);
  segment.requested_size = tensor.bytes;
  segment.stream = tensor.stream;
  segment.is_large = !DeviceStatistics::is_small(tensor.bytes);
  segment.context_when_allocated = tensor.context;
  auto& block = segment.blocks.emplace_back();
  block.size = segment.total_size;
  block.requested_size = tensor.bytes;
  block.allocated = block.active = true;
  block.context_when_allocated = tensor.context;
  return segment;
}

}  // namespace

DelegatingAllocator::DeviceStats CudaAllocator::getDeviceStats(Device of) {
  DeviceStats stats = native().getDeviceStats(of);
  if (of == device()) add_statistics(stats, statistics_.stats());
  return stats;
}

void CudaAllocator::resetAccumulatedStats(Device of) {
  native().resetAccumulatedStats(of);
  if (of == device()) statistics_.reset_accumulated();
}

void CudaAllocator::resetPeakStats(Device of) {
  native().resetPeakStats(of);
  if (of == device()) statistics_.reset_peaks();
}

// cuDNN's benchmark asks how large a workspace may be. All of the device's memory may be full of tensors that can
// leave, so what is free says nothing; and beside its workspace a kernel needs its tensors.
void CudaAllocator::cacheInfo(Device of, std::size_t* largest) {
  native().cacheInfo(of, largest);
  if (of == device()) *largest = std::max(*largest, tensors_.budget_bytes() / 4);
}

void* CudaAllocator::getBaseAllocation(void* memory, std::size_t* bytes) {
  if (!tensors_.contains(memory)) return native().getBaseAllocation(memory, bytes);
  const std::optional<LiveTensor> tensor = live_.find(memory);
  TORCH_CHECK(tensor, "invalid device pointer: ", memory);
  if (bytes != nullptr) *bytes = DeviceStatistics::rounded(tensor->bytes);
  return memory;
}

void CudaAllocator::attachOutOfMemoryObserver(OutOfMemoryObserver observer) {
  {
    const MutexLock lock(observers_mutex_);
    observers_.push_back(observer);
  }
  native().attachOutOfMemoryObserver(std::move(observer));
}

DelegatingAllocator::SnapshotInfo CudaAllocator::snapshot(PoolId pool, bool include_traces) {
  SnapshotInfo info = native().snapshot(pool, include_traces);
  if (pool == PoolId{0, 0}) {  // of everything
    for (const auto& [memory, tensor] : live_.all()) info.segments.push_back(segment_of(memory, tensor, device()));
    std::ranges::sort(info.segments, {}, [](const Segment& each) { return std::tuple(each.device, each.address); });
  }
  if (!include_traces) return info;
  const auto place = static_cast<std::size_t>(tensors_.device_index());
  if (info.device_traces.size() <= place) info.device_traces.resize(place + 1);
  std::vector<Entry>& trace = info.device_traces[place];
  auto ours = history_.entries();
  std::ranges::move(ours, std::back_inserter(trace));
  std::ranges::stable_sort(trace, {}, [](const Entry& entry) { return entry.time_.t_; });
  return info;
}

void CudaAllocator::recordHistory(bool enabled, CreateContext create, std::size_t most_entries, RecordContext when,
                                  bool clear, const std::vector<std::string>& skipped) {
  native().recordHistory(enabled, create, most_entries, when, clear, skipped);
  TensorHistory::Wishes wishes{.enabled = enabled,
                               .create_context = create,
                               .most_entries = most_entries,
                               .when = when,
                               .clear = clear,
                               .skipped = {}};
  for (const std::string& action : skipped)
    wishes.skipped.push_back(c10::CachingDeviceAllocator::parseTraceEntryAction(action));
  history_.set(std::move(wishes));
}

void CudaAllocator::attachAllocatorTraceTracker(TraceTracker tracker) {
  history_.attach(tracker);
  native().attachAllocatorTraceTracker(std::move(tracker));
}

DelegatingAllocator::Context CudaAllocator::getContextForPointer(const void* memory) {
  if (!tensors_.contains(memory)) return DelegatingAllocator::getContextForPointer(memory);
  const std::optional<LiveTensor> tensor = live_.find(memory);
  return tensor ? tensor->context : nullptr;
}

DelegatingAllocator::ShareableHandle CudaAllocator::shareIpcHandle(void* memory) {
  TORCH_CHECK(!tensors_.contains(memory),
              "spillway cannot share this tensor with another process: its memory moves while the script runs. Share a "
              "copy in memory of PyTorch's own instead (with torch.cuda.use_mem_pool(torch.cuda.MemPool()): shared = "
              "tensor.clone()), or run the script without spillway");
  return native().shareIpcHandle(memory);
}

// PyTorch's own allocator does the same for memory that cuMemMap has mapped: another GPU reaches ours with this call
// only, also where the GPUs may access each other.
cudaError_t CudaAllocator::memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                       cudaStream_t stream, bool peers_may_access) {
  if (to_device != from_device && (tensors_.contains(to) || tensors_.contains(from)))
    return cuda_.copy_between_devices(to, to_device, from, from_device, bytes, stream);
  return native().memcpyAsync(to, to_device, from, from_device, bytes, stream, peers_may_access);
}

}  // namespace spillway
