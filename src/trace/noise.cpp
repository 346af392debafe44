#include "trace/noise.h"

#include <cmath>

#include "base/check.h"

namespace spillway {
namespace {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t bits = state += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

}  // namespace

Trace with_noise(Trace trace, Noise noise) {
  CHECK(noise.percent <= 100);
  std::uint64_t state = noise.seed;
  for (Kernel& kernel : trace.kernels) {
    const double between = static_cast<double>(next_random(state) >> 11) * 0x1p-52 - 1;  // -1 and 1
    const double factor = 1 + static_cast<double>(noise.percent) / 100 * between;
    kernel.duration = {static_cast<std::uint64_t>(std::llround(static_cast<double>(kernel.duration.value) * factor))};
  }
  return trace;
}

}  // namespace spillway
