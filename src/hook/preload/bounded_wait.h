#pragma once

#include <time.h>

#include <cstdint>

#include "session/hook_side.h"

namespace spillway {

// Looks again and again, with sleeps, since whoever waits may be in a signal handler. False if the condition has not
// come true within that time.
template <typename Condition>
bool wait_for(std::uint64_t seconds, Condition condition) noexcept {
  const std::uint64_t end = monotonic_ns() + seconds * 1'000'000'000;
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
  while (!condition()) {
    if (monotonic_ns() >= end) return false;
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace spillway
