#pragma once

#include <cstdint>

#include "base/units.h"

namespace spillway {

// An iteration of the script has ended, as it seems by now: what comes later may say that it was none, or goes on.
struct IterationEnded {
  enum class Place : std::uint8_t {
    next,   // It comes after those before it.
    last,   // The last one went on, and ends here.
    first,  // Those before it were none: all until now is the first one.
  };
  Place place = Place::next;
  Nanos at;  // CLOCK_MONOTONIC
};

}  // namespace spillway
