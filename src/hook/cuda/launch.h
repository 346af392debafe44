#pragma once

#include <cstdint>
#include <span>

#include "machines/cuda/driver_variable.h"

// CUDA's handles, so that those who watch launches need no header of CUDA.
struct CUfunc_st;
struct CUgraphExec_st;
struct CUstream_st;

namespace spillway {

// Device memory that somebody registered: [begin, begin + bytes). `id` is theirs.
struct CudaRange {
  std::uint64_t begin = 0, bytes = 0, id = 0;
};

enum class CudaAccess : std::uint8_t { read, write, read_or_write };

// A pointer into a registered range, found among what a launch was given.
struct CudaTouch {
  std::uint64_t address = 0;
  std::uint64_t range = 0;                        // its id
  CudaAccess access = CudaAccess::read_or_write;  // of kernels, whose code is not looked at
};

// One thing that a stream is asked to do.
struct CudaLaunch {
  enum class Kind : std::uint8_t { kernel, copy, set, graph };
  Kind kind = Kind::kernel;
  CUfunc_st* function = nullptr;    // a kernel's; a library's kernel (CUkernel) stands here, too, as in cuLaunchKernel
  CUgraphExec_st* graph = nullptr;  // a graph's
  CUstream_st* stream = nullptr;    // CU_STREAM_PER_THREAD where the caller's null meant that
  std::span<const CudaTouch> touches;  // the same address may stand here more than once
  bool is_complete = true;             // false: it may touch more, since the layout of some parameters is not known
  bool is_captured = false;            // it becomes part of a graph and does not run now
};

// Is told of each launch on the thread that asks for it. Launches that it makes itself are not reported. It must live
// as long as anybody launches.
class LaunchObserver {
 public:
  // Before the driver is asked. False: it is not, and the caller gets CUDA_ERROR_OUT_OF_MEMORY.
  virtual bool before(const CudaLaunch& launch) noexcept = 0;
  // After the driver has been asked; `result` is its CUresult. Not called where before() said false.
  virtual void after(const CudaLaunch& launch, int result) noexcept = 0;
  // Before the driver destroys a stream: another one may get its handle.
  virtual void stream_ends(CUstream_st*) noexcept {}
  // After the driver has been asked to let a stream wait for an event: what is in order after that stream from now on
  // is so after what the event is behind.
  virtual void stream_waits(CUstream_st*) noexcept {}

 protected:
  ~LaunchObserver() = default;
};

// What libspillway_cuda.so offers to who shares its process: what spillway_cuda_shim() returns. All may be called from
// any thread.
class CudaShim {
 public:
  // False where it is empty, lies above 2^47, or overlaps another; in a forked child always. Takes 24 MiB for each TiB
  // of addresses, for good.
  virtual bool add(const CudaRange& range) noexcept = 0;
  // False where none begins there.
  virtual bool remove(std::uint64_t begin) noexcept = 0;
  // Null: nobody watches. Launches that have begun may still tell the one before.
  virtual void observe(LaunchObserver* observer) noexcept = 0;
  // A function of the real driver, past the shim; null if it lacks that.
  virtual void* driver_function(const char* name) noexcept = 0;
  // How many functions were handed out unwatched, since the driver knows a newer version of them than the shim does.
  virtual std::uint64_t unwatched_functions() const noexcept = 0;

 protected:
  ~CudaShim() = default;
};

inline constexpr const char* kCudaShimSymbol = "spillway_cuda_shim";  // CudaShim* (), looked up by dlsym

}  // namespace spillway
