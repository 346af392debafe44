#pragma once

#include <gtest/gtest.h>

#include "hook/torch/cuda/cuda_allocator.h"
#include "hook/torch/cuda/fake_device_tensors.h"
#include "hook/torch/cuda/fake_native.h"

namespace spillway {

inline cudaStream_t stream_of(std::uintptr_t number) { return reinterpret_cast<cudaStream_t>(number << 4); }

// What CUDA would say is current.
struct CurrentCuda {
  c10::DeviceIndex device = 0;
  cudaStream_t stream = stream_of(1);
};
inline CurrentCuda now;

inline constexpr CudaCalls kCallsWithoutGpu{
    .current_device = [] { return now.device; },
    .current_stream = [](c10::DeviceIndex) { return now.stream; },
    .handle = &handle_of,
    .copy_between_devices = [](void*, int, const void*, int, std::size_t, cudaStream_t) { return cudaSuccess; },
};

class CudaAllocatorTest : public testing::Test {
 protected:
  CudaAllocatorTest() { now = {}; }
  bool is_managed(const c10::DataPtr& data) const { return tensors.contains(data.get()); }
  std::int64_t allocated(c10::DeviceIndex device = 0) {
    return allocator.getDeviceStats(device)
        .allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
        .current;
  }

  FakeNative native;
  FakeDeviceTensors tensors;
  CudaAllocator allocator{native, tensors, kCallsWithoutGpu};
};

}  // namespace spillway
