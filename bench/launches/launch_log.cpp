// liblaunch_log.so: writes down what the launch shim reports, for scripts that ask by ctypes (see launches.py).
#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "hook/cuda/launch.h"

namespace {

using spillway::CudaLaunch;
using spillway::CudaShim;

struct Record {  // as launches.py reads it
  std::uint64_t function, stream, first_address, addresses;
  std::uint8_t kind, is_complete, is_captured, unused[5];
};

class Log final : public spillway::LaunchObserver {
 public:
  bool before(const CudaLaunch& launch) noexcept override {
    const std::lock_guard lock(mutex);
    records.push_back({.function = reinterpret_cast<std::uint64_t>(launch.function),
                       .stream = reinterpret_cast<std::uint64_t>(launch.stream),
                       .first_address = addresses.size(),
                       .addresses = launch.touches.size(),
                       .kind = static_cast<std::uint8_t>(launch.kind),
                       .is_complete = launch.is_complete,
                       .is_captured = launch.is_captured,
                       .unused = {}});
    for (const spillway::CudaTouch& touch : launch.touches) addresses.push_back(touch.address);
    return true;
  }
  void after(const CudaLaunch&, int) noexcept override {}

  std::mutex mutex;
  std::vector<Record> records;
  std::vector<std::uint64_t> addresses;
};

// Sees launches, and that is all: for the cost of seeing them.
class WatchOnly final : public spillway::LaunchObserver {
 public:
  bool before(const CudaLaunch&) noexcept override { return true; }
  void after(const CudaLaunch&, int) noexcept override {}
};

Log& log() {
  static auto* const one = new Log;
  return *one;
}

CudaShim* shim() {
  static CudaShim* const one = [] {
    auto* const find = reinterpret_cast<CudaShim* (*)()>(::dlsym(RTLD_DEFAULT, spillway::kCudaShimSymbol));
    return find != nullptr ? find() : nullptr;
  }();
  return one;
}

}  // namespace

extern "C" {

// 0: no shim in this process.
int launch_log_has_shim() { return shim() != nullptr; }
void launch_log_start() {
  const std::lock_guard lock(log().mutex);
  log().records.clear();
  log().addresses.clear();
  shim()->observe(&log());
}
void launch_log_watch_only() {
  static WatchOnly watcher;
  shim()->observe(&watcher);
}
void launch_log_stop() { shim()->observe(nullptr); }
int launch_log_add(std::uint64_t begin, std::uint64_t bytes) {
  return shim()->add({.begin = begin, .bytes = bytes, .id = begin});
}
int launch_log_remove(std::uint64_t begin) { return shim()->remove(begin); }
std::uint64_t launch_log_unwatched() { return shim()->unwatched_functions(); }

// What has been written down since the start; valid until the next start.
std::uint64_t launch_log_size() { return log().records.size(); }
const Record* launch_log_records() { return log().records.data(); }
const std::uint64_t* launch_log_addresses() { return log().addresses.data(); }

// A kernel's mangled name; null: the driver does not say.
const char* launch_log_name(std::uint64_t function) {
  const char* name = nullptr;
  auto* const of_function = reinterpret_cast<decltype(&::cuFuncGetName)>(shim()->driver_function("cuFuncGetName"));
  auto* const of_kernel = reinterpret_cast<decltype(&::cuKernelGetName)>(shim()->driver_function("cuKernelGetName"));
  if (of_function != nullptr && of_function(&name, reinterpret_cast<CUfunction>(function)) == CUDA_SUCCESS) return name;
  if (of_kernel != nullptr && of_kernel(&name, reinterpret_cast<CUkernel>(function)) == CUDA_SUCCESS) return name;
  return nullptr;
}
}
