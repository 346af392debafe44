#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "analysis/lifetimes.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// The values below which 10, 50 and 90 of a hundred lie, and the two ends; all 0 if there are none.
template <class T>
struct Quantiles {
  T least{}, tenth{}, median{}, ninetieth{}, most{};
};

// What G10's section 3 measures of a training iteration.
struct Characterisation {
  // Its figure 2: bytes that a kernel uses, as a share (0 to 1) of the bytes alive while it runs, by kernel, and of the
  // iteration's peak, as the figure draws it.
  double active_of_live_mean = 0, active_of_live_median = 0, active_of_live_most = 0;
  double active_of_peak_mean = 0, active_of_peak_median = 0, active_of_peak_most = 0;
  // Its figures 3 and 4.
  Quantiles<Nanos> inactive_length;
  Quantiles<Bytes> inactive_bytes;
  double longer_than_20us = 0, longer_than_100ms = 0, longer_than_10s = 0;  // shares of the periods
  // The share of periods that are longer than writing their tensor to G10's SSD and reading it back takes.
  double hide_ssd_round_trip = 0;
};

// The SSD of G10's table 2, one of it, idle.
inline constexpr BytesPerSecond kG10SsdRead{3'200'000'000};
inline constexpr BytesPerSecond kG10SsdWrite{3'000'000'000};
inline constexpr Nanos kG10SsdReadLatency{20'000};
inline constexpr Nanos kG10SsdWriteLatency{16'000};

Characterisation characterise(const Trace& trace, const Lifetimes& lifetimes);

// A kernel, the bytes alive while it runs, and those it uses.
struct Moment {
  KernelId kernel;
  Bytes live;
  Bytes working_set;
};

// The kernels with the most bytes alive, heaviest first. They lie at least a fiftieth of the iteration's kernels apart,
// so that the list shows different places of it.
std::vector<Moment> heaviest_moments(const Lifetimes& lifetimes, std::size_t most);

}  // namespace spillway
