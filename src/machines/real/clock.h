#pragma once

#include <time.h>

#include "base/units.h"

namespace spillway {

// The time that all events of the CPU machine are stamped with: CLOCK_MONOTONIC, which never goes backwards.
inline Nanos now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return {static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec)};
}

}  // namespace spillway
