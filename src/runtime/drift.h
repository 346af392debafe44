#pragma once

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace spillway {

// What a plan is made from that may change while the script goes on.
struct DriftBasis {
  Nanos sum;  // of the kernels' times in an iteration
  BytesPerSecond ssd_read, ssd_write;
};

// Whether what is measured now is so far from it that another plan might be better.
inline bool has_drifted(const DriftBasis& from, const DriftBasis& now) {
  constexpr double kTimes = 0.05;  // TENSILE section IV-E: |s' - s| / s
  constexpr double kRates = 0.25;  // Those of a probe, or of few moves, are not those of a planned iteration.
  const auto differs = [](auto was, auto is, double part) {
    const auto before = static_cast<double>(was.value), after = static_cast<double>(is.value);
    return std::abs(after - before) > part * before;
  };
  return differs(from.sum, now.sum, kTimes) || differs(from.ssd_read, now.ssd_read, kRates) ||
         differs(from.ssd_write, now.ssd_write, kRates);
}

}  // namespace spillway
