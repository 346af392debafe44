#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "executor/machine.h"
#include "memory/tier.h"
#include "trace/trace.h"

namespace spillway {

// Which blocks every tensor of a trace lies in: its own, of at most 2 MiB, the last one as small as the rest of the
// tensor. Tensors below 4 KiB are packed into shared blocks (G10 section 4.5), persistent ones and others apart.
struct Layout {
  std::vector<BlockRange> tensors;  // by TensorId
  std::vector<Bytes> block_bytes;   // by BlockId
  std::vector<Bytes> begins{};      // by TensorId: where in its first block; empty: all at the start of theirs

  // What the kernel's reads, then its writes touch, in order: their byte ranges, or all of each tensor; what is read
  // and written once, since a kernel that works in place goes through it once. Which rows of a sparse access are
  // touched no trace says, so all within its range are.
  std::vector<BlockAccess> accesses(const Trace& trace, const Kernel& kernel, bool whole_tensors = false) const;
};

Layout plain_layout(const Trace& trace);

// A trace's tensors and kernels are the same in every iteration.
constexpr TensorLabel label_of(TensorId tensor) { return {std::uint64_t{tensor.value} + 1}; }
constexpr ExecutionId execution_of(KernelId kernel) { return {std::uint64_t{kernel.value} + 1}; }

}  // namespace spillway
