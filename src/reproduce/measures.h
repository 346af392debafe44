#pragma once

#include <optional>
#include <vector>

#include "analysis/characterise.h"
#include "reproduce/experiment.h"
#include "trace/trace.h"

namespace spillway {

struct CurvePoint {
  double x = 0, y = 0;
};

// What is measured of an outcome; nothing where there is no such number.
using Measure = std::optional<double> (*)(const Outcome& outcome);
std::optional<double> percent_of_ideal(const Outcome& outcome);
std::optional<double> percent_computing(const Outcome& outcome);   // of the iteration, while nothing moves
std::optional<double> percent_overlapped(const Outcome& outcome);  // while something moves
std::optional<double> percent_stalled(const Outcome& outcome);
std::optional<double> percent_waiting(const Outcome& outcome);  // of an iteration, for memory
std::optional<double> percent_slowed(const Outcome& outcome);   // of the kernels
std::optional<double> ssd_gigabytes(const Outcome& outcome);    // between device and SSD, both ways; decimal
std::optional<double> host_gigabytes(const Outcome& outcome);
std::optional<double> ssd_written_gigabytes(const Outcome& outcome);
std::optional<double> written_gigabytes(const Outcome& outcome);  // that left the device
std::optional<double> iteration_seconds(const Outcome& outcome);
std::optional<double> hundred_iterations_seconds(const Outcome& outcome);
std::optional<double> thousand_faulted_pages(const Outcome& outcome);  // of 4 KiB: all those of each block
std::optional<double> flash_years(const Outcome& outcome);
// TENSILE's (section V-A): the part of the peak that is saved, how many times as long an iteration takes, and the
// quotient of both; of all iterations that are trained.
std::optional<double> memory_saving(const Outcome& outcome);
std::optional<double> extra_overhead(const Outcome& outcome);
std::optional<double> first_extra_overhead(const Outcome& outcome);
std::optional<double> cost_benefit(const Outcome& outcome);

// What is measured of a trace alone.
struct TraceFacts {
  explicit TraceFacts(const Trace& trace);

  const Trace& trace;
  Lifetimes lifetimes;
  Characterisation character;
};
using TraceMeasure = double (*)(const TraceFacts& facts);
double active_percent_of_peak(const TraceFacts& facts);  // mean over kernels
double kernels_below_tenth(const TraceFacts& facts);     // percent of them that use less than 10 % of the peak
double largest_kernel_gigabytes(const TraceFacts& facts);
double peak_gigabytes(const TraceFacts& facts);             // the most that is alive at a time
double block_tables_megabytes(const TraceFacts& facts);     // DeepUM's, one for each kernel, of the default shape
double percent_longer_than_100ms(const TraceFacts& facts);  // of inactive periods
double percent_longer_than_10s(const TraceFacts& facts);
double percent_that_hide_swaps(const TraceFacts& facts);  // of them: long enough to go to G10's SSD and come back
double shortest_inactivity_microseconds(const TraceFacts& facts);
double longest_inactivity_seconds(const TraceFacts& facts);
double smallest_inactive_bytes(const TraceFacts& facts);
double largest_inactive_gigabytes(const TraceFacts& facts);

// A line of a trace; at most a few hundred points.
using TraceCurve = std::vector<CurvePoint> (*)(const TraceFacts& facts);
std::vector<CurvePoint> live_percent(const TraceFacts& facts);      // by kernel, of the peak
std::vector<CurvePoint> active_percent(const TraceFacts& facts);    // by kernel, of the peak
std::vector<CurvePoint> inactive_periods(const TraceFacts& facts);  // seconds, bytes of the tensor; alike ones are one
std::vector<CurvePoint> inactive_lengths(const TraceFacts& facts);  // seconds, percent of periods that are not longer

}  // namespace spillway
