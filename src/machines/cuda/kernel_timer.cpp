#include "machines/cuda/kernel_timer.h"

#include <algorithm>
#include <utility>

#include "machines/cuda/driver_scope.h"
#include "machines/real/clock.h"

namespace spillway {

struct KernelTimer::Running {
  bool is_in_kernel = false;
  CUstream stream = nullptr;
  CUevent start = nullptr;  // null: it has launched nothing yet
  Nanos began, stalled;
};
thread_local KernelTimer::Running KernelTimer::running;

KernelTimer::~KernelTimer() {
  const MutexLock lock(mutex_);
  for (const Kernel& kernel : older_)
    for (const CUevent event : {kernel.base, kernel.start})
      if (event != nullptr) driver_.cuEventDestroy(event);
  for (const Kernel& kernel : newer_)
    for (const CUevent event : {kernel.base, kernel.start})
      if (event != nullptr) driver_.cuEventDestroy(event);
  for (const auto& [stream, last] : last_) driver_.cuEventDestroy(last.end);
  for (const CUevent event : free_) driver_.cuEventDestroy(event);
}

CUevent KernelTimer::take_event() {
  CUevent event = nullptr;
  if (!free_.empty()) {
    event = free_.back();
    free_.pop_back();
  } else if (driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    return nullptr;
  }
  return event;
}

void KernelTimer::kernel_begins() noexcept {
  running = {};
  running.is_in_kernel = measures_.load(std::memory_order_relaxed);
}

void KernelTimer::launches(CUstream stream) noexcept {
  if (!running.is_in_kernel || running.start != nullptr) return;
  const MutexLock lock(mutex_);
  if (newer_.size() >= kMost) return;
  const CUevent start = take_event();
  if (start == nullptr) return;
  if (driver_.cuEventRecord(start, stream) != CUDA_SUCCESS) return free_.push_back(start);
  running.stream = stream;
  running.start = start;
  running.began = now();
  running.stalled = stall_.total(running.began);
}

std::optional<std::uint32_t> KernelTimer::kernel_ends() noexcept {
  const Running kernel = std::exchange(running, {});
  if (kernel.start == nullptr) return std::nullopt;
  const MutexLock lock(mutex_);
  const CUevent end = take_event();
  if (end == nullptr || driver_.cuEventRecord(end, kernel.stream) != CUDA_SUCCESS) {
    free_.push_back(kernel.start);
    if (end != nullptr) free_.push_back(end);
    return std::nullopt;
  }
  Last& last = last_[kernel.stream];
  const Nanos since = excess(kernel.began, last.host_end);
  newer_.push_back({.base = last.end,
                    .start = kernel.start,
                    .end = end,
                    .host_gap = excess(since, excess(kernel.stalled, last.stalled))});
  const Nanos at = now();
  last = {.end = end, .host_end = at, .stalled = stall_.total(at)};
  return static_cast<std::uint32_t>(newer_.size() - 1);
}

Result<Nanos> KernelTimer::between(CUevent from, CUevent to) const {
  float milliseconds = 0;
  TRY_VOID(driver_.check(driver_.cuEventElapsedTime(&milliseconds, from, to), "see how long kernels took"));
  return Nanos{static_cast<std::uint64_t>(std::max(static_cast<double>(milliseconds), 0.0) * 1e6)};
}

Result<KernelTimer::Time> KernelTimer::time_of(const Kernel& kernel) const {
  TRY_VOID(driver_.check(driver_.cuEventSynchronize(kernel.end), "run the script's kernels"));
  TRY(const Nanos duration, between(kernel.start, kernel.end));
  Nanos gap;
  if (kernel.base != nullptr) {
    TRY(const Nanos idle, between(kernel.base, kernel.start));
    gap = std::min(idle, kernel.host_gap);
  }
  return Time{duration, gap};
}

std::vector<KernelTimer::Time> KernelTimer::collect() {
  const DriverScope scope(driver_, context_);
  std::vector<Kernel> kernels;
  {
    const MutexLock lock(mutex_);
    kernels = std::exchange(older_, std::exchange(newer_, {}));
  }
  std::vector<Time> times;
  times.reserve(kernels.size());
  for (const Kernel& kernel : kernels) times.push_back(time_of(kernel).value_or(Time{}));
  const MutexLock lock(mutex_);
  for (const Kernel& kernel : kernels) {  // Its end is the base of the next one, or the last one's.
    if (kernel.base != nullptr) free_.push_back(kernel.base);
    free_.push_back(kernel.start);
  }
  return times;
}

}  // namespace spillway
