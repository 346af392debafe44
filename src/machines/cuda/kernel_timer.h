#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/units.h"
#include "machines/cuda/driver.h"
#include "machines/real/stall_clock.h"

namespace spillway {

// Note [Times of kernels]
// A kernel here is an operator: from its first launch to its last on one stream. Two events tell how long the device
// was at it. The first one is recorded after the launch has got its memory, so waiting for that does not count.
//
// The gap before it is how long the device had nothing to do. Some of that may be waiting for memory, too. But without
// such waits the device is never idle for longer than the host takes from the end of one kernel's launches to the first
// launch of the next, while it does not wait: the gap is the shorter of both.
class KernelTimer {
 public:
  // Both outlive it.
  KernelTimer(const CudaDriver& driver, CUcontext context, const StallClock& stall)
      : driver_(driver), context_(context), stall_(stall) {}
  ~KernelTimer();
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

  // Before that nothing is measured. collect() is to be called now and then.
  void start() { measures_.store(true, std::memory_order_relaxed); }

  // ---- Launching threads, each for itself.
  void kernel_begins() noexcept;
  // The next launch is about to be enqueued there.
  void launches(CUstream stream) noexcept;
  // Its number among those since the last collect(); nothing: it launched nothing.
  std::optional<std::uint32_t> kernel_ends() noexcept;

  // ---- One thread at a time. The times of kernels between the last two calls, by number; zero where they cannot be
  // had. Waits until these are done, which they mostly are.
  struct Time {
    Nanos duration, gap;
  };
  std::vector<Time> collect();

 private:
  struct Kernel {
    CUevent base = nullptr;  // the end of the one before it on its stream; null: there is none
    CUevent start = nullptr, end = nullptr;
    Nanos host_gap;
  };
  struct Last {  // of a stream
    CUevent end = nullptr;
    Nanos host_end, stalled;
  };
  struct Running;  // of a thread

  CUevent take_event() SPILLWAY_REQUIRES(mutex_);
  Result<Time> time_of(const Kernel& kernel) const;
  Result<Nanos> between(CUevent from, CUevent to) const;

  static constexpr std::size_t kMost = std::size_t{1} << 16;  // kernels between two calls of collect() that are timed

  const CudaDriver& driver_;
  CUcontext context_;
  const StallClock& stall_;
  static thread_local Running running;
  std::atomic<bool> measures_{false};

  Mutex mutex_;
  std::vector<Kernel> older_ SPILLWAY_GUARDED_BY(mutex_), newer_ SPILLWAY_GUARDED_BY(mutex_);
  std::unordered_map<CUstream, Last> last_ SPILLWAY_GUARDED_BY(mutex_);
  std::vector<CUevent> free_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
