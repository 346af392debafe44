#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace spillway {

// How blocks leave the managed range.
enum class EvictionMethod : std::uint8_t {
  automatic,  // move where a try of it works, else copy
  move,       // UFFDIO_MOVE: Linux 6.8
  copy,       // write-protect, copy, drop
};
std::string_view to_text(EvictionMethod method);

// What to use here: tries the move with a real block. Fails if UFFDIO_MOVE is asked for and does not work, and if page
// faults cannot be served at all; the message says what is missing and the remedy.
Result<EvictionMethod> choose(EvictionMethod wanted);

}  // namespace spillway
