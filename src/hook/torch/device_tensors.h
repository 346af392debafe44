#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace spillway {

// What PyTorch's allocator of a GPU gets from the hook, and tells it. All calls are for any thread. Implemented in
// libspillway_torch.so; those who call it lie in other libraries.
class DeviceTensors {
 public:
  // The one GPU whose tensors these are, as PyTorch counts.
  virtual int device_index() const noexcept = 0;
  // Its budget (--device-memory).
  virtual std::size_t budget_bytes() const noexcept = 0;

  // Memory for a tensor whose kernels run on this stream: 512-byte aligned, contents undefined, never null. Throws
  // c10::OutOfMemoryError, whose text names the tiers that are short.
  virtual void* allocate(std::size_t bytes, CUstream_st* stream) = 0;
  // The tensor is dead. All that uses it has been enqueued.
  virtual void free(void* memory) noexcept = 0;
  // Another stream uses the tensor, too.
  virtual void record_stream(void* memory, CUstream_st* stream) = 0;
  virtual bool contains(const void* address) const noexcept = 0;

 protected:
  ~DeviceTensors() = default;
};

// The preloaded library has it: DeviceTensors* (int device_type), a c10::DeviceType. Starts the session where it
// manages a GPU; null: this process's tensors on such a device are not managed.
inline constexpr const char* kDeviceTensorsSymbol = "spillway_device_tensors";
using DeviceTensorsOf = DeviceTensors* (*)(int device_type);

}  // namespace spillway
