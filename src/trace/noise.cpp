#include "trace/noise.h"

#include <cmath>

#include "base/check.h"
#include "base/split_mix.h"

namespace spillway {

Trace with_noise(Trace trace, Noise noise) {
  CHECK(noise.percent <= 100);
  std::uint64_t state = noise.seed;
  for (Kernel& kernel : trace.kernels) {
    const double factor = 1 + static_cast<double>(noise.percent) / 100 * next_signed(state);
    kernel.duration = {static_cast<std::uint64_t>(std::llround(static_cast<double>(kernel.duration.value) * factor))};
  }
  return trace;
}

}  // namespace spillway
