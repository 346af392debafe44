#pragma once

// A CUDA driver without a GPU (libfake_cuda.so): it exports all that the shim forwards, writes down who called what,
// and answers what the shim asks about kernels and graphs. Handles are pointers to the structures below.

#include <cuda.h>

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace spillway {

struct FakeKernel {
  std::string name;
  std::vector<std::size_t> offsets, bytes;            // of its parameters
  bool is_library_kernel = false;                     // a CUkernel; a CUfunction otherwise
  CUresult answer = CUDA_SUCCESS;                     // anything else is what the driver says when asked about it
  CUresult as_the_other = CUDA_ERROR_INVALID_HANDLE;  // ... and when asked about the other kind of handle
  CUfunction function() { return reinterpret_cast<CUfunction>(this); }
};

struct FakeGraph;
struct FakeNode {
  CUgraphNodeType type{};
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS set{};
  FakeGraph* child = nullptr;
};
struct FakeGraph {
  std::deque<FakeNode> nodes;
  CUgraph graph() { return reinterpret_cast<CUgraph>(this); }
};

struct FakeCall {
  std::string name;
  std::array<std::uint64_t, 11> arguments{};  // whatever stood where so many would
};

// Set up by one thread before others call.
struct FakeDriver {
  std::set<const void*> kernels;     // registered FakeKernels; anything else is no handle
  std::set<std::string> missing;     // what this driver lacks when asked by cuGetProcAddress
  bool has_other_addresses = false;  // cuGetProcAddress finds other addresses than dlsym does
  std::set<CUstream> capturing;
  CUresult result = CUDA_SUCCESS;  // of all that only writes down
  bool writes_down = true;
  void (*called)(const char* name) = nullptr;  // within each such call

  std::mutex mutex;
  std::vector<FakeCall> calls;         // GUARDED_BY(mutex)
  std::vector<std::string> asked_for;  // GUARDED_BY(mutex): "cuLaunchKernel 4000 0"
};

using FakeDriverOf = FakeDriver* (*)();  // "fake_cuda"

}  // namespace spillway
