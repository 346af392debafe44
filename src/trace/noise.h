#pragma once

#include <cstdint>

#include "trace/trace.h"

namespace spillway {

// How far kernels' times are from those that were profiled (G10 section 7.6): each is off by a part of its own, equally
// likely to be anything up to `percent` more or less.
struct Noise {
  std::uint64_t percent = 0;  // 100 at most
  std::uint64_t seed = 0;
};

// The same trace with the times of its kernels changed; gaps stay. The same for the same seed, on every machine.
Trace with_noise(Trace trace, Noise noise);

}  // namespace spillway
