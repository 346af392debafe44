#include "machines/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>

#include "machines/cuda/driver_variable.h"

namespace spillway {

std::string CudaDriver::text_of(CUresult result) const {
  const char *name = nullptr, *words = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS) return fmt::format("CUDA error {}", static_cast<int>(result));
  if (cuGetErrorString(result, &words) != CUDA_SUCCESS) return name;
  return fmt::format("{}: {}", name, words);
}

Result<> CudaDriver::check(CUresult result, std::string_view what) const {
  if (result == CUDA_SUCCESS) return {};
  return fail(Errc::unavailable, fmt::format("cannot {} on the GPU ({})", what, text_of(result)));
}

Result<CudaDriver> load_cuda_driver(const char* library) {
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(Errc::unavailable, fmt::format("there is no CUDA driver here (loading {}: {})", library, ::dlerror()));
  CudaDriver driver;
  const char* missing = nullptr;
#define SPILLWAY_TEXT_OF(name) #name
#define SPILLWAY_LOOK_UP(name)                                                                    \
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(handle, SPILLWAY_TEXT_OF(name))); \
  if (driver.name == nullptr) missing = SPILLWAY_TEXT_OF(name);
  SPILLWAY_CUDA_FUNCTIONS(SPILLWAY_LOOK_UP)
#undef SPILLWAY_LOOK_UP
#undef SPILLWAY_TEXT_OF
  if (missing != nullptr)
    return fail(Errc::unavailable,
                fmt::format("the CUDA driver here ({}) lacks {}: a newer one is needed (that of CUDA 12.8 suffices)",
                            library, missing));
  return driver;
}

Result<std::string> cuda_driver_path() {
  if (const char* named = std::getenv(kCudaDriverVariable); named != nullptr && *named == '/')
    return std::string(named);
  void* const handle = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return fail(Errc::unavailable, fmt::format("there is no CUDA driver here ({})", ::dlerror()));
  link_map* loaded = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&loaded)) != 0)
    return fail(Errc::unavailable, fmt::format("cannot tell where the CUDA driver is: {}", ::dlerror()));
  std::error_code error;
  std::string path = std::filesystem::canonical(loaded->l_name, error).string();
  if (error) return fail(Errc::io, fmt::format("{}: {}", loaded->l_name, error.message()));
  return path;
}

}  // namespace spillway
