#include "hook/torch/cuda/install.h"

#include <cstdint>

#include "hook/torch/cuda/cuda_allocator.h"

extern "C" __attribute__((visibility("default"))) void spillway_torch_cuda_install(
    spillway::DeviceTensors* tensors) noexcept {
  CHECK(tensors != nullptr);
  // Never destroyed: tensors die after everything else.
  auto* ours = new spillway::CudaAllocator(*c10::cuda::CUDACachingAllocator::get(), *tensors, spillway::kCudaCalls);
  c10::cuda::CUDACachingAllocator::allocator.store(ours);
  // The second place where PyTorch looks: torch.accelerator's functions of memory do. PyTorch's own priority there is
  // not 0.
  constexpr std::uint8_t kHighestPriority = 255;
  c10::SetAllocator(c10::DeviceType::CUDA, ours, kHighestPriority);
}
