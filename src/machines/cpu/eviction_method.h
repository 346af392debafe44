#pragma once

#include <cstdint>
#include <string_view>

namespace spillway {

// How blocks leave the managed range.
enum class EvictionMethod : std::uint8_t {
  automatic,  // move where a try of it works, else copy
  move,       // UFFDIO_MOVE: Linux 6.8
  copy,       // write-protect, copy, drop
};
std::string_view to_text(EvictionMethod method);

}  // namespace spillway
