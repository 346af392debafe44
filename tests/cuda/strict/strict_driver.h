#pragma once

// A CUDA driver without a GPU that really runs what it is given (libstrict_cuda.so): device memory is a memfd, mapping
// is mmap, streams are threads, kernels are functions of the host. Memory that is not mapped faults.
//
// It is stricter than a GPU: what a GPU answers with an error much later, or with wrong bytes, ends the process here at
// once with a line on stderr. See `die` in strict_device.cpp for what that is.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace spillway {

// A function that streams run. Its parameters are as cuLaunchKernel takes them.
struct StrictKernel {
  struct Memory {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
  };
  std::string name;
  std::vector<std::size_t> parameters;                           // bytes of each
  std::function<void(void** parameters)> run;                    // on the stream's thread
  std::function<std::vector<Memory>(void** parameters)> memory;  // that it touches; asked when it is launched
  CUfunction function() { return reinterpret_cast<CUfunction>(this); }
};

// What tests set up, before others call or between.
struct StrictCuda {
  std::size_t device_bytes = std::size_t{1} << 30;  // or what STRICT_CUDA_DEVICE_BYTES says
  std::size_t pinned_bytes = std::size_t{1} << 32;  // host memory that can be pinned
  // How many calls of a function succeed before one fails, and with what; that one failure is then over.
  struct Fault {
    std::uint64_t after = 0;
    CUresult result = CUDA_ERROR_UNKNOWN;
  };

  void (*is_spared)(bool) = nullptr;  // whether the calling thread's calls never fail so

  std::mutex mutex;
  std::map<std::string, Fault> faults;          // GUARDED_BY(mutex), by function
  std::map<std::string, std::uint64_t> calls;   // GUARDED_BY(mutex)
  std::uint64_t most_mapped = 0, mapped = 0;    // GUARDED_BY(mutex): bytes
  std::uint64_t most_created = 0, created = 0;  // GUARDED_BY(mutex): bytes of physical memory
  // Like a GPU: a launch that touches what it cannot does not run, and all calls fail from then on. Else it ends the
  // process.
  bool loses_device = false;         // GUARDED_BY(mutex)
  CUresult all_fail = CUDA_SUCCESS;  // GUARDED_BY(mutex): with this
};

using StrictCudaOf = StrictCuda* (*)();  // "strict_cuda"

}  // namespace spillway
