#include "hook/torch/cuda/cuda_allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

namespace spillway {
namespace {

std::atomic<CudaAllocator*> the_allocator{nullptr};

void delete_memory(void* memory) { the_allocator.load()->delete_allocated(memory); }

}  // namespace

const CudaCalls kCudaCalls{
    .current_device =
        [] {
          c10::DeviceIndex device = 0;
          C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
          // PyTorch may have noted only which device is meant. The kernel that follows needs it set.
          c10::cuda::SetTargetDevice();
          return device;
        },
    .current_stream = [](c10::DeviceIndex device) { return c10::cuda::getCurrentCUDAStream(device).stream(); },
    .handle = [](c10::cuda::CUDAStream stream) { return stream.stream(); },
    .copy_between_devices = &cudaMemcpyPeerAsync,
};

CudaAllocator::CudaAllocator(CUDAAllocator& native, DeviceTensors& tensors, const CudaCalls& cuda)
    : DelegatingAllocator(native),
      tensors_(tensors),
      cuda_(cuda),
      native_deleter_(native.raw_deleter()),
      native_never_caches_(std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr) {
  CHECK(the_allocator.exchange(this) == nullptr);
}

CudaAllocator::~CudaAllocator() { the_allocator.store(nullptr); }

// Note [A disabled allocator]
// With torch.cuda.caching_allocator_enable(False) a script asks for memory of its own from CUDA, and gets that. The
// native allocator has another deleter then: what that deletes stays with it. A variable of PyTorch's does the same to
// a whole process. That is for finding errors in kernels, and no reason to manage nothing.
bool CudaAllocator::is_disabled() const { return !native_never_caches_ && !native().isEnabled(); }

c10::DeleterFnPtr CudaAllocator::raw_deleter() const { return is_disabled() ? native().raw_deleter() : &delete_memory; }

bool CudaAllocator::serves(Device current, cudaStream_t stream) const {
  return current == device() && !is_disabled() && !pools_.want(stream);
}

c10::DataPtr CudaAllocator::allocate(std::size_t bytes) {
  const Device current = cuda_.current_device();
  if (bytes == 0) return {nullptr, nullptr, raw_deleter(), c10::Device(c10::DeviceType::CUDA, current)};
  const cudaStream_t stream = cuda_.current_stream(current);
  if (!serves(current, stream)) return adopted(native().allocate(bytes));
  void* memory = make(bytes, stream);
  return {memory, memory, &delete_memory, c10::Device(c10::DeviceType::CUDA, current)};
}

c10::DataPtr CudaAllocator::adopted(c10::DataPtr of_native) const {
  static_cast<void>(of_native.compare_exchange_deleter(native_deleter_, &delete_memory));  // fails while disabled
  return of_native;
}

void* CudaAllocator::raw_alloc(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const Device current = cuda_.current_device();
  const cudaStream_t stream = cuda_.current_stream(current);
  return serves(current, stream) ? make(bytes, stream) : native().raw_alloc(bytes);
}

void* CudaAllocator::raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return nullptr;
  return serves(cuda_.current_device(), stream) ? make(bytes, stream) : native().raw_alloc_with_stream(bytes, stream);
}

void CudaAllocator::raw_delete(void* memory) {
  if (memory == nullptr) return;
  tensors_.contains(memory) ? end(memory) : native().raw_delete(memory);
}

// Where the native allocator never caches, raw_delete() is not for what its allocate() has given.
void CudaAllocator::delete_allocated(void* memory) {
  if (memory == nullptr) return;
  tensors_.contains(memory) ? end(memory) : native_deleter_(memory);
}

void* CudaAllocator::make(std::size_t bytes, cudaStream_t stream) {
  LiveTensor tensor{.bytes = bytes, .stream = stream, .context = history_.context(RecordContext::STATE)};
  void* memory = nullptr;
  try {
    memory = tensors_.allocate(bytes, stream);
  } catch (const c10::OutOfMemoryError&) {
    tell_out_of_memory(bytes, stream, std::move(tensor.context));
    throw;
  }
  live_.add(memory, tensor);
  statistics_.born(bytes);
  remember(TensorHistory::Action::ALLOC, reinterpret_cast<std::size_t>(memory), tensor, tensor.context);
  tell_profiler(memory, static_cast<std::int64_t>(DeviceStatistics::rounded(bytes)));
  if (const auto* interpreter = c10::impl::GPUTrace::get_trace())
    (*interpreter)->trace_gpu_memory_allocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(memory));
  return memory;
}

void CudaAllocator::end(void* memory) {
  if (const auto* interpreter = c10::impl::GPUTrace::get_trace())
    (*interpreter)->trace_gpu_memory_deallocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(memory));
  const std::optional<LiveTensor> tensor = live_.remove(memory);
  TORCH_CHECK(tensor, "invalid device pointer: ", memory);
  statistics_.died(tensor->bytes);
  Context context = history_.context(RecordContext::ALL);
  if (context == nullptr) context = tensor->context;
  const auto address = reinterpret_cast<std::size_t>(memory);
  remember(TensorHistory::Action::FREE_REQUESTED, address, *tensor, context);
  // Before it is freed: another thread may get the same address then.
  remember(TensorHistory::Action::FREE_COMPLETED, address, *tensor, std::move(context));
  tell_profiler(memory, -static_cast<std::int64_t>(DeviceStatistics::rounded(tensor->bytes)));
  tensors_.free(memory);
}

void CudaAllocator::tell_out_of_memory(std::size_t bytes, cudaStream_t stream, Context context) {
  statistics_.out_of_memory();
  const std::size_t budget = tensors_.budget_bytes();
  const DeviceStatistics::Held held = statistics_.held();
  const std::size_t left = budget - std::min(budget, held.allocated);
  const LiveTensor unborn{.bytes = bytes, .stream = stream, .context = nullptr};
  remember(TensorHistory::Action::OOM, left, unborn, std::move(context));
  c10::reportOutOfMemoryToProfiler(static_cast<std::int64_t>(bytes), held.allocated, held.reserved,
                                   c10::Device(c10::DeviceType::CUDA, device()));
  std::vector<OutOfMemoryObserver> observers;
  {
    const MutexLock lock(observers_mutex_);
    observers = observers_;
  }
  for (const OutOfMemoryObserver& observer : observers) observer(device(), bytes, budget, left);
}

void CudaAllocator::tell_profiler(void* memory, std::int64_t change) {
  if (!c10::memoryProfilingEnabled()) return;
  const DeviceStatistics::Held held = statistics_.held();
  c10::reportMemoryUsageToProfiler(memory, change, held.allocated, held.reserved,
                                   c10::Device(c10::DeviceType::CUDA, device()));
}

void CudaAllocator::remember(TensorHistory::Action action, std::size_t address, const LiveTensor& tensor,
                             Context context) {
  if (!history_.is_wanted()) return;
  history_.add({.action = action,
                .device = device(),
                .address = address,
                .bytes = tensor.bytes,
                .stream = tensor.stream,
                .context = std::move(context),
                .metadata = getUserMetadata()});
}

void CudaAllocator::recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) {
  void* memory = data.get();
  if (memory == nullptr) return;
  // What has another deleter is an alias, or another process's: the native allocator knows which of them to leave
  // alone.
  if (data.get_deleter() != &delete_memory) return native().recordStream(data, stream);
  if (tensors_.contains(memory)) {
    const std::optional<LiveTensor> tensor = live_.find(memory);
    TORCH_CHECK(tensor, "invalid device pointer: ", memory);
    const cudaStream_t user = cuda_.handle(stream);
    if (tensor->stream != user) tensors_.record_stream(memory, user);
    return;
  }
  // It takes only what has its own deleter.
  c10::DataPtr of_native(memory, memory, native_deleter_, data.device());
  native().recordStream(of_native, stream);
  static_cast<void>(of_native.release_context());
}

void CudaAllocator::beginAllocateToPool(Device on, PoolId pool, std::function<bool(cudaStream_t)> filter) {
  native().beginAllocateToPool(on, pool, filter);
  if (on == device()) pools_.begin(pool, std::move(filter));
}

void CudaAllocator::endAllocateToPool(Device on, PoolId pool) {
  if (on == device()) pools_.end(pool);
  native().endAllocateToPool(on, pool);
}

DelegatingAllocator::CheckpointDelta CudaAllocator::setCheckpointPoolState(Device on,
                                                                           std::shared_ptr<AllocatorState> state) {
  CheckpointDelta delta = native().setCheckpointPoolState(on, std::move(state));
  for (c10::DataPtr& data : delta.dataptrs_allocd) data = adopted(std::move(data));
  return delta;
}

c10::DataPtr CudaAllocator::allocateWithAddress(std::size_t bytes, void* address) {
  return adopted(DelegatingAllocator::allocateWithAddress(bytes, address));
}

}  // namespace spillway
