#include "driver.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <cstdlib>

#include "hook/cuda/launch.h"

namespace spillway {
namespace {

void* open_library() {
  // A real driver may be there under the same name.
  if (void* const shim = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
      shim != nullptr && ::dlsym(shim, kCudaShimSymbol) != nullptr)
    return shim;
  const char* const path = std::getenv(kCudaDriverVariable);
  TORCH_CHECK(path != nullptr, "the strict device needs its driver: set ", kCudaDriverVariable,
              " to libstrict_cuda.so");
  void* const driver = ::dlopen(path, RTLD_NOW);
  TORCH_CHECK(driver != nullptr, "the strict device cannot load its driver: ", ::dlerror());
  return driver;
}

DeviceDriver load() {
  void* const library = open_library();
  DeviceDriver driver;
#define SPILLWAY_TEXT_OF(name) #name
#define SPILLWAY_TEXT(name) SPILLWAY_TEXT_OF(name)
#define SPILLWAY_LOOK_UP(name)                                                                  \
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, SPILLWAY_TEXT(name))); \
  TORCH_CHECK(driver.name != nullptr, "the strict device's driver has no ", SPILLWAY_TEXT(name));
  SPILLWAY_DEVICE_FUNCTIONS(SPILLWAY_LOOK_UP)
  return driver;
}

DeviceDriver start() {
  const DeviceDriver driver = load();
  CUcontext context = nullptr;
  const bool has_started = driver.cuInit(0) == CUDA_SUCCESS &&
                           driver.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                           driver.cuCtxSetCurrent(context) == CUDA_SUCCESS;
  TORCH_CHECK(has_started, "the strict device's driver does not start");
  return driver;
}

}  // namespace

const DeviceDriver& device_driver() {
  static const DeviceDriver driver = start();
  return driver;
}

void check(CUresult result, std::string_view what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (device_driver().cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  TORCH_CHECK(false, "the strict device cannot ", what, " (", name, ")");
}

}  // namespace spillway
