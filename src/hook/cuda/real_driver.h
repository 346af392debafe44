#pragma once

#include <cuda.h>

#include "hook/cuda/kernel_layout.h"

// Names in this folder are those that the driver exports (cuMemcpyHtoD_v2), not those that the header maps to them.
#ifndef __CUDA_API_VERSION_INTERNAL
#error "compile this folder with __CUDA_API_VERSION_INTERNAL"
#endif

namespace spillway {

// The driver that the shim stands before, with the functions that the shim itself calls. Each may be null: drivers
// before 550 lack some.
struct RealDriver {
  // clang-format off
#define SPILLWAY_REAL_FUNCTIONS(X)                                                                      \
  X(cuFuncGetParamInfo) X(cuKernelGetParamInfo) X(cuFuncGetName) X(cuKernelGetName) X(cuStreamIsCapturing) \
  X(cuGraphGetNodes) X(cuGraphNodeGetType) X(cuGraphKernelNodeGetParams_v2) X(cuGraphMemcpyNodeGetParams) \
  X(cuGraphMemsetNodeGetParams) X(cuGraphChildGraphNodeGetGraph)
// clang-format on
#define SPILLWAY_DECLARE_REAL(name) decltype(&::name) name = nullptr;
  SPILLWAY_REAL_FUNCTIONS(SPILLWAY_DECLARE_REAL)
#undef SPILLWAY_DECLARE_REAL

  void* library = nullptr;  // null: there is none, and standard error says why

  void* function(const char* name) const;
  // What cuLaunchKernel takes with this function, or library's kernel.
  KernelLayout layout_of(CUfunction function) const;
};

// Loads the library that kCudaDriverVariable names. It stays loaded.
RealDriver open_real_driver();

}  // namespace spillway
