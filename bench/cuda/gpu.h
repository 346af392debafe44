#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "machines/cuda/driver.h"
#include "samples.h"

namespace spillway::probe {

inline constexpr std::size_t kMiB = 1 << 20;
inline constexpr int kSkipped = 77;  // exit status where there is no GPU

// The first GPU with its context, and the kernels of kernels.ptx.h. A part of the probe is a process of its own, so
// whatever fails ends that with a message.
class Gpu {
 public:
  // Exits with status 77 and a line if there is no driver or no GPU.
  static std::unique_ptr<Gpu> open();
  int attribute(CUdevice_attribute attribute) const;

  const CudaDriver* operator->() const { return &driver_; }
  void use_in_this_thread() const;
  void check(CUresult result, std::string_view what) const;
  CUdevice device() const { return device_; }
  CUmodule module() const;  // the kernels, loaded once more
  std::string name() const;
  std::string driver_version() const;  // "13.0"

  CUstream stream() const;  // a new one, which does not wait for the default stream
  CUdeviceptr memory(std::size_t bytes) const;
  void* pinned(std::size_t bytes) const;
  void wait(CUstream stream) const;

  // Kernels, enqueued. Pointers are to device memory, counts are of 4-byte words.
  void nothing(CUstream stream) const;
  void spin(CUstream stream, std::uint64_t nanoseconds) const;             // one thread waits so long
  void burn(CUstream stream, CUdeviceptr out, std::uint32_t steps) const;  // all multiprocessors do arithmetic
  void store(CUstream stream, CUdeviceptr at, std::uint32_t words, std::uint32_t value) const;
  void store_for(CUstream stream, CUdeviceptr at, std::uint32_t words, std::uint32_t value,
                 std::uint64_t nanoseconds) const;
  void sum(CUstream stream, CUdeviceptr from, std::uint32_t words, CUdeviceptr to) const;  // adds to the word at `to`
  std::uint32_t sum_of(CUstream stream, CUdeviceptr from, std::uint32_t words) const;      // waits for it

 private:
  struct Kernels {
    CUfunction nothing, spin, burn, store, store_for, sum;
  };
  explicit Gpu(CudaDriver driver) : driver_(driver) {}
  void launch(CUfunction Kernels::* kernel, unsigned blocks, unsigned threads, CUstream stream, void** arguments) const;

  CudaDriver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  unsigned multiprocessors_ = 0;
  mutable std::once_flag loaded_;  // at the first launch: facts are told of a GPU that cannot compile them, too
  mutable Kernels kernels_{};
};

// Ends the process at once, whatever its threads do: the driver may be anywhere.
[[noreturn]] void end(int status, const std::string& why);

// One line of the probe's output: a measured thing, or a fact.
void tell(std::string_view what, std::string_view unit, const Samples& samples);
void tell(std::string_view what, std::string_view fact);

}  // namespace spillway::probe
