#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "machines/cuda/driver.h"

namespace spillway {

// A stream of ours: copies one way, one after the other. Marks count on; a mark is done when all that was enqueued
// before it is. The run loop enqueues; any thread may ask what is done and make its own streams wait.
class CopyStream {
 public:
  static Result<std::unique_ptr<CopyStream>> make(const CudaDriver& driver);
  // Waits until all of it is done.
  ~CopyStream();
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  // What is enqueued after this waits for the event.
  Result<> wait_for(CUevent event);
  // The host's memory is pinned, and stays as it is until the next mark is done.
  Result<> copy_to_device(CUdeviceptr to, const std::byte* from, std::size_t bytes);
  Result<> copy_from_device(std::byte* to, CUdeviceptr from, std::size_t bytes);
  Result<std::uint64_t> mark();  // Waits only where very many marks are not done.

  // Looks what has been done meanwhile.
  Result<> poll();
  // Until all that was enqueued is done. For any thread, while nothing is enqueued.
  Result<> wait() const { return driver_.check(driver_.cuStreamSynchronize(stream_), "copy blocks"); }
  bool is_busy() const { return done() < marked_; }
  std::uint64_t done() const { return done_.load(std::memory_order_acquire); }
  // Done when this mark is, or later.
  CUevent event_of(std::uint64_t mark) const { return events_[mark % kEvents]; }

 private:
  static constexpr std::size_t kEvents = 1024;

  explicit CopyStream(const CudaDriver& driver) : driver_(driver) {}

  const CudaDriver& driver_;
  CUstream stream_ = nullptr;
  std::array<CUevent, kEvents> events_{};
  std::uint64_t marked_ = 0;
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace spillway
