#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "base/mutex.h"
#include "base/result.h"
#include "machines/cuda/copy_stream.h"
#include "machines/cuda/device_memory.h"
#include "memory/tier.h"

namespace spillway {

// Note [Strict runs]
// What a launch touches is found by looking at what it was given (docs/gpu.md). A developer lets a run check that: one
// launch at a time has the device, and while it runs it can use only the blocks that it was seen to touch. So it faults
// on whatever was not seen. Launches that are captured into a graph do not run, and the graph is a launch.
//
// Access is taken away, and memory stays mapped: the driver refuses copies there, and kernels fault. It is not given
// back after each launch but when something needs it: a launch that touches the block, or a copy of ours. So a launch
// costs as many calls as it and the one before it touch blocks, however large the device is.
class LaunchCheck {
 public:
  struct Around {  // All outlive it.
    const CudaDriver& driver;
    CUcontext context;
    DeviceMemory& memory;
    const CopyStream& up;
    const CopyStream& down;
  };
  explicit LaunchCheck(const Around& around) : around_(around) {}

  // ---- Launching threads. The blocks are mapped, and what brings their bytes has been enqueued.
  // Unless it fails, nobody else launches until end(), and the run loop neither maps nor copies.
  Result<> begin(std::span<const BlockRange> touched) SPILLWAY_UNPROVED;
  // The launch has been enqueued, or refused. `on_miss` is told the device's error once it has faulted, before the run
  // loop can see the same and end the process.
  using OnMiss = std::function<void(const Error&)>;
  void end(CUstream stream, const OnMiss& on_miss) SPILLWAY_UNPROVED;

  // ---- The run loop holds it while it maps, unmaps or copies.
  Mutex& mutex() { return mutex_; }

  std::uint64_t checked() const { return checked_.load(std::memory_order_relaxed); }  // launches

 private:
  Around around_;
  Mutex mutex_;
  std::atomic<std::uint64_t> checked_{0};
};

}  // namespace spillway
