#pragma once

#include <atomic>
#include <span>
#include <string_view>

namespace spillway {

// A function of the driver's in whose place callers get ours.
struct Gate {
  const char* name;          // as the driver exports it: cuMemcpyHtoD_v2_ptds
  std::string_view base;     // as cuGetProcAddress is asked for it: cuMemcpyHtoD
  int since;                 // the first version of CUDA that has this signature (cudaTypedefs.h)
  void* function;            // ours
  std::atomic<void*>* real;  // where the driver's is kept
};

std::span<const Gate> gates();

// The gate for what cuGetProcAddress finds when asked for `base` of that version of CUDA, for callers who want a
// default stream a thread or not. Null: it is not gated.
const Gate* find_gate(std::string_view base, int version, bool per_thread);

}  // namespace spillway
