#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// From the end of one use of a tensor to the start of its next (G10 section 4.2), with at least one kernel strictly
// between: those pass while the tensor is inactive. If `wraps`, the next use is in the next iteration: persistent and
// carried tensors have such a period. There the bytes are used next as the tensor's heir, which is the same tensor
// unless it is carried into another one.
//
// If it is the `last`, no use comes any more: the tensor is alive (a gradient that nobody has freed, a loss that Python
// holds) until it is freed just before the kernel `before`. Freed at the end of the iteration, it `wraps` too, with the
// first kernel. G10 has no such periods: its tensors die with their last use.
struct InactivePeriod {
  TensorId tensor;
  KernelId after;   // the last kernel that used it
  KernelId before;  // the next kernel that uses it, or the first one without it
  bool wraps = false;
  bool last = false;
};

struct Lifetime {
  std::vector<KernelId> uses;   // ascending, each kernel once; may be empty for a persistent or carried tensor
  bool alive_at_start = false;  // persistent, or carried from the iteration before
  bool alive_at_end = false;    // persistent, or carried into the next iteration
  // First use; meaningful unless alive_at_start without self-carry. A tensor carried from itself is born after its
  // death.
  KernelId birth;
  KernelId death;  // freed when this kernel has ended; meaningful unless alive_at_end without self-carry
  std::optional<TensorId> heir{};  // the tensor that has its bytes in the next iteration, if alive_at_end

  // Freed, and where it is carried from itself not yet born again, when this kernel starts.
  bool is_dead_before(KernelId kernel) const { return death < kernel && (!alive_at_end || kernel <= birth); }
};

struct Lifetimes {
  std::vector<Lifetime> tensors;              // by TensorId
  std::vector<InactivePeriod> periods;        // by tensor, then by start
  std::vector<std::vector<TensorId>> births;  // by kernel: tensors allocated just before it, ascending
  std::vector<std::vector<TensorId>> deaths;  // by kernel: tensors freed just after it, ascending
  std::vector<Bytes> live;                    // by kernel: bytes alive while it runs
  std::vector<Bytes> working_set;             // by kernel: bytes of all tensors it uses, each once
};

// The trace must be valid. Time and memory grow with its accesses.
Lifetimes analyse_lifetimes(const Trace& trace);

}  // namespace spillway
