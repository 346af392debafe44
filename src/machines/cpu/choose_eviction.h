#pragma once

#include "base/result.h"
#include "machines/cpu/eviction_method.h"

namespace spillway {

// What to use here: tries the move with a real block. Fails if UFFDIO_MOVE is asked for and does not work, and if page
// faults cannot be served at all; the message says what is missing and the remedy.
Result<EvictionMethod> choose(EvictionMethod wanted);

}  // namespace spillway
