#pragma once

#include <cstdint>

#include "trace/trace.h"

namespace spillway {

// For tests: what random_trace() makes. The shape is that of training: forward kernels make activations that backward
// kernels read in reverse order, weights persist, gradients live until the optimizer or into the next iteration.
struct RandomTraceOptions {
  std::uint32_t layers_most = 12;
  std::uint64_t bytes_most = 64 << 20;  // of one tensor
  bool carries = true;                  // tensors that live across the iteration's end without being persistent
  bool partial_accesses = true;         // ranges, sparse ones, several of one tensor
  bool replays = true;                  // kernels that can be replayed; they omit what they write in part
};

// A valid trace, a function of its arguments alone.
Trace random_trace(std::uint64_t seed, const RandomTraceOptions& options = {});

}  // namespace spillway
