// For cuda_allocator_test.py: what it cannot ask of Python, within a process that has PyTorch.
#include <cstring>

#include "hook/torch/cuda/fake_device_tensors.h"

#define SPILLWAY_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
namespace allocators = c10::cuda::CUDACachingAllocator;

spillway::FakeDeviceTensors tensors;
}  // namespace

SPILLWAY_EXPORT spillway::DeviceTensors* fake_device_tensors() { return &tensors; }

SPILLWAY_EXPORT const void* allocator_of_torch() { return allocators::get(); }

SPILLWAY_EXPORT const void* allocator_of_accelerator() { return c10::getDeviceAllocator(c10::DeviceType::CUDA); }

// Else it would be taken for one that a script has switched off.
SPILLWAY_EXPORT bool is_enabled() { return allocators::get()->isEnabled(); }

// What the allocator says when a tensor is to be shared: only ours knows it.
SPILLWAY_EXPORT bool says_when_shared(const char* words) {
  try {
    allocators::get()->shareIpcHandle(tensors.allocate(1, nullptr));
  } catch (const c10::Error& error) {
    return std::strstr(error.what_without_backtrace(), words) != nullptr;
  }
  return false;
}

// Passes through to PyTorch's own, which knows no such memory.
SPILLWAY_EXPORT bool refuses_unknown_memory() {
  try {
    allocators::get()->getBaseAllocation(&tensors, nullptr);
  } catch (const c10::Error&) {
    return true;
  }
  return false;
}
