#pragma once

#include "base/units.h"
#include "plan/block_trace.h"

namespace spillway {

// Addresses for what an iteration makes, chosen once, so that every iteration finds the same tensors in the same
// blocks. What a general heap gives out repeats only if nothing at all is different, and one tensor that a script keeps
// until the next iteration moves most others.
struct Placement {
  Places places;  // counted from the region's start; nothing for what persists, is smaller than `least`, or is
                  // replaced while its successor lives (two iterations cannot agree on a place for that)
  Bytes bytes;    // of the region: whole blocks
};

// Three parts, each filled best fit in the order of the kernels: what goes on into the next iteration (at places of its
// own), what nobody uses for a good while, and so may move, and what comes and goes. So blocks that stay away long are
// not shared with such as are used all the time. Does not depend on times.
Placement place_births(const Trace& trace, const Lifetimes& lifetimes, Bytes least, Bytes block_bytes);

}  // namespace spillway
