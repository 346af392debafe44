#pragma once

#include "hook/torch/device_tensors.h"

namespace spillway {

// libspillway_torch_cuda.so has it: puts our allocator before the one that PyTorch has. To be called once, before
// PyTorch's allocator is initialised; the tensors must live as long as the process.
inline constexpr const char* kInstallCudaAllocatorSymbol = "spillway_torch_cuda_install";
using InstallCudaAllocator = void (*)(DeviceTensors*);

}  // namespace spillway
