#pragma once

#include <cuda.h>

#include <string_view>

namespace spillway {

// The CUDA driver, found in the process: Spillway's shim where that is preloaded, else the library that
// SPILLWAY_CUDA_DRIVER names. The header renames some functions to their newest version, here as well as where they are
// called and looked up.
struct DeviceDriver {
  // clang-format off
#define SPILLWAY_DEVICE_FUNCTIONS(X)                                                          \
  X(cuInit) X(cuGetErrorName) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent)                  \
  X(cuMemAlloc) X(cuMemFree) X(cuMemAllocHost)                                                \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuLaunchKernel)                                 \
  X(cuStreamCreate) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent)              \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize)
// clang-format on
#define SPILLWAY_DECLARE(name) decltype(&::name) name = nullptr;
  SPILLWAY_DEVICE_FUNCTIONS(SPILLWAY_DECLARE)
#undef SPILLWAY_DECLARE
};

// Started at the first call. Throws c10::Error where there is none.
const DeviceDriver& device_driver();

// Throws c10::Error: "cannot allocate (CUDA_ERROR_...)" for "allocate".
void check(CUresult result, std::string_view what);

}  // namespace spillway
