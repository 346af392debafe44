#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/mutex.h"
#include "hook/cuda/launch.h"
#include "machines/cuda/cuda_machine.h"

namespace spillway {

// Holds each launch that the shim sees until the blocks that it touches are on the device.
class GatedLaunches final : public LaunchObserver {
 public:
  // The machine outlives it. The range's id says in which blocks it lies.
  explicit GatedLaunches(CudaMachine& machine) : machine_(machine) {}
  CudaRange range_of(const void* begin, Bytes bytes) const;

  bool before(const CudaLaunch& launch) noexcept override;
  void after(const CudaLaunch& launch, int result) noexcept override;
  void stream_ends(CUstream_st* stream) noexcept override;

  // As long as it lives the calling thread runs an operator that may touch these blocks: a launch whose pointers are
  // not all known needs all of them.
  class Operator {
   public:
    explicit Operator(std::span<const BlockTouch> touches);
    ~Operator();
    Operator(const Operator&) = delete;
    Operator& operator=(const Operator&) = delete;

   private:
    std::span<const BlockTouch> before_;
  };

  // Why the latest launch that was refused was; empty: none was.
  std::string refusal() const;
  // Launches that may have touched more than was seen, outside of operators.
  std::uint64_t blind_launches() const { return blind_launches_.load(std::memory_order_relaxed); }

 private:
  CudaMachine& machine_;
  std::atomic<std::uint64_t> blind_launches_{0};
  mutable Mutex mutex_;
  std::string refusal_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
