#include "hook/cuda/real_driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "hook/cuda/launch.h"

namespace spillway {
namespace {

// The handle's parameters as one of the two functions tells them. What ended the list: CUDA_ERROR_INVALID_VALUE past
// the last.
template <class Handle>
CUresult ask_for_parameters(CUresult (*ask)(Handle, size_t, size_t*, size_t*), CUfunction function,
                            std::vector<KernelLayout::Parameter>& parameters) {
  parameters.clear();
  if (ask == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  for (KernelLayout::Parameter next;; parameters.push_back(next)) {
    const CUresult result = ask(reinterpret_cast<Handle>(function), parameters.size(), &next.offset, &next.bytes);
    if (result != CUDA_SUCCESS) return result;
  }
}

}  // namespace

void* RealDriver::function(const char* name) const { return library != nullptr ? ::dlsym(library, name) : nullptr; }

// Note [Functions and kernels]
// cuLaunchKernel takes a CUkernel in the place of a CUfunction, and nothing tells which it is. cuFuncGetParamInfo says
// CUDA_ERROR_INVALID_HANDLE of a CUkernel, and cuKernelGetParamInfo of a CUfunction. CUDA_ERROR_INVALID_VALUE of the
// first parameter means that there is none, but is believed only where the other function knows of none either.
KernelLayout RealDriver::layout_of(CUfunction function) const {
  KernelLayout layout;
  const CUresult as_function = ask_for_parameters(cuFuncGetParamInfo, function, layout.parameters);
  const char* name = nullptr;
  if (as_function == CUDA_ERROR_INVALID_VALUE && !layout.parameters.empty()) {
    layout.is_known = true;
    if (cuFuncGetName == nullptr || cuFuncGetName(&name, function) != CUDA_SUCCESS) name = nullptr;
  } else {
    const CUresult as_kernel = ask_for_parameters(cuKernelGetParamInfo, function, layout.parameters);
    const auto is_end_or_other = [](CUresult result) {
      return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE;
    };
    const bool has_none = is_end_or_other(as_function) && is_end_or_other(as_kernel) &&
                          (as_function == CUDA_ERROR_INVALID_VALUE || as_kernel == CUDA_ERROR_INVALID_VALUE);
    layout.is_known = layout.parameters.empty() ? has_none : as_kernel == CUDA_ERROR_INVALID_VALUE;
    if (cuKernelGetName == nullptr || cuKernelGetName(&name, reinterpret_cast<CUkernel>(function)) != CUDA_SUCCESS)
      name = nullptr;
  }
  if (layout.is_known && name != nullptr && !layout.parameters.empty())
    layout.tensor_lists = tensor_lists_of(name, layout.parameters.front().bytes);
  return layout;
}

RealDriver open_real_driver() {
  RealDriver driver;
  const char* path = std::getenv(kCudaDriverVariable);
  // Anything but an absolute path would find the shim, which has the driver's name.
  if (path == nullptr || *path != '/') {
    std::fprintf(stderr,
                 "spillway: no CUDA in this process: %s must be the absolute path of the driver's libcuda.so.1\n",
                 kCudaDriverVariable);
    return driver;
  }
  driver.library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (driver.library == nullptr) {
    std::fprintf(stderr, "spillway: no CUDA in this process: %s\n", ::dlerror());
    return driver;
  }
  if (::dlsym(driver.library, kCudaShimSymbol) != nullptr) {
    std::fprintf(stderr, "spillway: no CUDA in this process: %s=%s is the launch shim itself, not the driver\n",
                 kCudaDriverVariable, path);
    driver.library = nullptr;
    return driver;
  }
#define SPILLWAY_FIND_REAL(name) driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(driver.library, #name));
  SPILLWAY_REAL_FUNCTIONS(SPILLWAY_FIND_REAL)
#undef SPILLWAY_FIND_REAL
  return driver;
}

}  // namespace spillway
