#include "device_memory.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "driver.h"
#include "hook/torch/device_tensors.h"
#include "streams.h"

namespace spillway {
namespace {

// Null: nobody manages them.
DeviceTensors* managed_tensors() {
  static DeviceTensors* const found = [] {
    const auto look_up = reinterpret_cast<DeviceTensorsOf>(::dlsym(RTLD_DEFAULT, kDeviceTensorsSymbol));
    return look_up != nullptr ? look_up(static_cast<int>(kStrictType)) : nullptr;
  }();
  return found;
}

class StrictAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, release, strict_device()};
    const std::size_t rounded = (bytes + 511) / 512 * 512;
    void* const memory = get(rounded);
    const std::lock_guard lock(mutex_);
    sizes_[memory] = rounded;
    allocated_.now += rounded;
    allocated_.most = std::max(allocated_.most, allocated_.now);
    return {memory, memory, release, strict_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "the strict device does not copy what it is lent");
  }

  void free(void* memory) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = sizes_.find(memory);
      allocated_.now -= found->second;
      sizes_.erase(found);
    }
    if (DeviceTensors* const tensors = managed_tensors()) return tensors->free(memory);
    check(device_driver().cuMemFree(reinterpret_cast<CUdeviceptr>(memory)), "free memory");
  }
  AllocatedBytes allocated() {
    const std::lock_guard lock(mutex_);
    return allocated_;
  }
  void forget_most() {
    const std::lock_guard lock(mutex_);
    allocated_.most = allocated_.now;
  }

  static StrictAllocator& get() {
    static auto& allocator = *new StrictAllocator;  // Tensors may outlive all else.
    return allocator;
  }

 private:
  static void release(void* memory) {
    if (memory != nullptr) get().free(memory);
  }
  static void* get(std::size_t bytes) {
    if (DeviceTensors* const tensors = managed_tensors()) return tensors->allocate(bytes, current_stream());
    CUdeviceptr memory = 0;
    const CUresult result = device_driver().cuMemAlloc(&memory, bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, result != CUDA_ERROR_OUT_OF_MEMORY, "the strict device has no ", bytes,
                     " bytes left");
    check(result, "allocate memory");
    return reinterpret_cast<void*>(memory);
  }

  std::mutex mutex_;
  std::unordered_map<void*, std::size_t> sizes_;  // GUARDED_BY(mutex_)
  AllocatedBytes allocated_;                      // GUARDED_BY(mutex_)
};

[[maybe_unused]] const bool has_allocator = (c10::SetAllocator(kStrictType, &StrictAllocator::get()), true);

}  // namespace

c10::Allocator& device_allocator() { return StrictAllocator::get(); }

void record_stream(void* memory, CUstream stream) {
  DeviceTensors* const tensors = memory != nullptr ? managed_tensors() : nullptr;
  if (tensors != nullptr) tensors->record_stream(memory, stream);  // The driver's own waits for all streams.
}

AllocatedBytes allocated_bytes() { return StrictAllocator::get().allocated(); }
void forget_most_allocated() { StrictAllocator::get().forget_most(); }

}  // namespace spillway
