#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway {

// The driver's functions that we call. The header renames some to their newest version (cuMemAlloc to cuMemAlloc_v2),
// here as well as where they are called and looked up.
// clang-format off
#define SPILLWAY_CUDA_FUNCTIONS(X)                                                                        \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString)                                   \
  X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem)                           \
  X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuCtxSynchronize)                                      \
  X(cuModuleLoadData) X(cuModuleGetFunction) X(cuLaunchKernel) X(cuFuncGetName) X(cuKernelGetName)        \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent)       \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize)               \
  X(cuEventElapsedTime) X(cuThreadExchangeStreamCaptureMode) X(cuCtxPushCurrent) X(cuCtxPopCurrent)         \
  X(cuStreamIsCapturing)                                                                                  \
  X(cuMemAlloc) X(cuMemsetD8Async) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync)         \
  X(cuMemAllocHost) X(cuMemFreeHost) X(cuMemHostRegister) X(cuMemHostUnregister)                          \
  X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap)     \
  X(cuMemSetAccess) X(cuMemGetAllocationGranularity) X(cuMemGetInfo)
// clang-format on

// The CUDA driver, found when the program runs: a build needs its header alone, and one build runs with and without a
// GPU.
struct CudaDriver {
#define SPILLWAY_DECLARE(name) decltype(&::name) name = nullptr;
  SPILLWAY_CUDA_FUNCTIONS(SPILLWAY_DECLARE)
#undef SPILLWAY_DECLARE

  // "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
  std::string text_of(CUresult result) const;
  // Errc::unavailable unless it is CUDA_SUCCESS: "cannot map a block on the GPU (CUDA_ERROR_...)" for "map a block".
  Result<> check(CUresult result, std::string_view what) const;
};

// Loads the library and looks all functions up, but starts nothing. It stays loaded. Errc::unavailable if there is
// none, or one that lacks a function, which the error names.
Result<CudaDriver> load_cuda_driver(const char* library = "libcuda.so.1");

// The absolute path of the driver here: what SPILLWAY_CUDA_DRIVER names, else what the loader finds.
Result<std::string> cuda_driver_path();

}  // namespace spillway
