#pragma once

#include <atomic>
#include <cstdint>

#include "hook/cuda/graphs.h"
#include "hook/cuda/launch.h"
#include "hook/cuda/launch_scanner.h"
#include "hook/cuda/real_driver.h"

namespace spillway {

// The one of this process; made when somebody calls CUDA for the first time, and never unmade: threads may launch while
// the process ends. Making it loads the driver: a library's constructor must not make the first call.
class Shim final : public CudaShim {
 public:
  static Shim& of_this_process() noexcept;

  bool add(const CudaRange& range) noexcept override { return !in_child() && scanner.add(range); }
  bool remove(std::uint64_t begin) noexcept override { return !in_child() && scanner.remove(begin); }
  void observe(LaunchObserver* observer) noexcept override {
    if (!in_child()) observer_.store(observer, std::memory_order_release);
  }
  void* driver_function(const char* name) noexcept override { return driver.function(name); }
  std::uint64_t unwatched_functions() const noexcept override { return unwatched.load(std::memory_order_relaxed); }

  LaunchObserver* observer() const noexcept { return observer_.load(std::memory_order_acquire); }
  // Forked from the process that this was made in: nothing is watched, for locks may have been held by threads that are
  // no more. Most such children cannot use CUDA themselves.
  bool in_child() const noexcept { return in_child_.load(std::memory_order_relaxed); }

  const RealDriver driver = open_real_driver();
  LaunchScanner scanner;
  GraphTable graphs;
  std::atomic<bool> has_captured{false};  // somebody has begun to capture a graph
  std::atomic<std::uint64_t> unwatched{0};

 private:
  Shim();
  std::atomic<LaunchObserver*> observer_{nullptr};
  std::atomic<bool> in_child_{false};
};

// The function that callers of the driver's function get: the shim's own, or the driver's, or one that says that there
// is none. Made once for each of functions.txt, when it is called first.
void* bound_function(const char* name) noexcept;

}  // namespace spillway
