#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// From the end of one use of a tensor to the start of its next (G10 section 4.2). If `wraps`, the next use is in the next
// iteration: persistent and carried tensors have such a period. The kernels strictly between are those that pass while
// the tensor is inactive.
struct InactivePeriod {
  TensorId tensor;
  KernelId after;   // the last kernel that used it
  KernelId before;  // the next kernel that uses it
  bool wraps = false;
};

struct Lifetime {
  std::vector<KernelId> uses;   // ascending, each kernel once
  bool alive_at_start = false;  // persistent, or carried from the iteration before
  bool alive_at_end = false;    // persistent, or carried into the next iteration
  KernelId birth;               // first use; meaningful unless persistent. A self-carried tensor is born after its death
  KernelId death;               // freed when this kernel has ended; meaningful unless alive_at_end without self-carry or persistent
};

struct Lifetimes {
  std::vector<Lifetime> tensors;         // by TensorId
  std::vector<InactivePeriod> periods;   // by tensor, then by start
  std::vector<std::vector<TensorId>> births;  // by kernel: tensors allocated just before it
  std::vector<std::vector<TensorId>> deaths;  // by kernel: tensors freed just after it
  std::vector<Bytes> live;               // by kernel: bytes alive while it runs
  std::vector<Bytes> working_set;        // by kernel: bytes of all tensors it uses, each once
};

// The trace must be valid. Time and memory grow with its accesses.
Lifetimes analyse_lifetimes(const Trace& trace);

}  // namespace spillway
