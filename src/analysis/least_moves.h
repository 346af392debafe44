#pragma once

#include "analysis/lifetimes.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// The bytes that no plan can do without in a steady iteration, if kernels find the whole of what they use on a device
// of this capacity (sparse accesses count as whole): those that come to it, and those that leave it for a tier that
// keeps what has been stored there until somebody writes to it (so what never changes leaves for nothing).
//
// Where too little is away for a kernel to run, what is needed furthest in the future should be (Belady, "A study of
// replacement algorithms for a virtual-storage computer", 1966). Moves take no time here and tensors may leave in
// parts, so each byte that is away costs the same and that choice is the best there is. Of the bytes out a tensor
// that leaves several times between two writes counts once, and as if it could be away even where it is read.
//
// O(log kernels) for each period and kernel.
struct LeastMoves {
  Bytes in, out;
};
LeastMoves least_moves(const Trace& trace, const Lifetimes& lifetimes, Bytes capacity);

}  // namespace spillway
