#pragma once

#include <cstdint>

#include "base/units.h"

namespace spillway {

// What has been moved, from the beginning until now or between two moments.
struct Paged {
  std::uint64_t faults = 0;
  Bytes in, out;  // to the device and from it
  Nanos waited;   // in which some thread waited for memory
};

}  // namespace spillway
