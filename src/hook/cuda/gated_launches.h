#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/result.h"
#include "hook/cuda/launch.h"
#include "machines/cuda/cuda_machine.h"
#include "machines/cuda/kernel_timer.h"

namespace spillway {

// Holds each launch that the shim sees until the blocks that it touches are on the device.
class GatedLaunches final : public LaunchObserver {
 public:
  // Called with why a launch was refused, on its thread, which may hold any lock of PyTorch's.
  using OnRefusal = std::function<void(std::string_view)>;
  // The machine outlives it, and so does the timer, which is told of launches; null: nobody is.
  explicit GatedLaunches(CudaMachine& machine, OnRefusal on_refusal = {}, KernelTimer* timer = nullptr)
      : machine_(machine), on_refusal_(std::move(on_refusal)), timer_(timer) {}
  // Its id says in which blocks it lies.
  CudaRange range_of(const void* begin, Bytes bytes) const;

  bool before(const CudaLaunch& launch) noexcept override;
  void after(const CudaLaunch& launch, int result) noexcept override;
  void stream_ends(CUstream_st* stream) noexcept override;
  void stream_waits(CUstream_st* stream) noexcept override;

  // The calling thread runs an operator until it ends. The name stays until then.
  static void operator_begins(std::string_view name);
  // It may touch this memory, too: its launches need it, or all of it where their pointers are not all known.
  void operator_touches(const void* begin, Bytes bytes, bool writes);
  static void operator_forgets(const void* begin, Bytes bytes);  // It is dead.
  static void operator_ends();

  // Launches that may have touched more than was seen, outside of operators.
  std::uint64_t blind_launches() const { return blind_launches_.load(std::memory_order_relaxed); }

 private:
  bool enter(const CudaLaunch& launch);
  void add_touches_of_operator(bool only_few) const;
  std::string name_of(const CudaLaunch& launch) const;
  BlockRange blocks_at(const void* begin, Bytes bytes) const;
  void refuse(const Error& why);

  CudaMachine& machine_;
  OnRefusal on_refusal_;
  KernelTimer* timer_;
  std::atomic<std::uint64_t> blind_launches_{0};
};

}  // namespace spillway
