#include "reproduce/measures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/timeline.h"

namespace spillway {
namespace {

constexpr double kGigabyte = 1e9;
constexpr std::size_t kMostPoints = 240;  // of a curve: more than a page's pixels would show
constexpr double kDotsOfTen = 16;         // within which a value grows tenfold: nearer ones would lie on each other
constexpr double kShortestDrawn = 1e-9;   // seconds: a logarithmic scale has no zero

double gigabytes(Bytes bytes) { return static_cast<double>(bytes.value) / kGigabyte; }

std::optional<double> percent(const Outcome& outcome, double part_seconds) {
  if (!outcome.feasible || outcome.iteration_seconds <= 0) return std::nullopt;
  return 100 * part_seconds / outcome.iteration_seconds;
}

std::optional<double> when_feasible(const Outcome& outcome, double value) {
  return outcome.feasible ? std::optional(value) : std::nullopt;
}

// Of each of at most kMostPoints parts of the iteration the kernel with the most: peaks are what the figure shows.
std::vector<CurvePoint> by_kernel(const std::vector<Bytes>& bytes, Bytes peak) {
  std::vector<CurvePoint> points;
  const std::size_t parts = std::min(bytes.size(), kMostPoints);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * bytes.size() / parts, end = (part + 1) * bytes.size() / parts;
    std::size_t most = begin;
    for (std::size_t k = begin; k < end; ++k)
      if (bytes[k] > bytes[most]) most = k;
    points.push_back({.x = static_cast<double>(most),
                      .y = 100 * static_cast<double>(bytes[most].value) / static_cast<double>(peak.value)});
  }
  return points;
}

Bytes peak_of(const TraceFacts& facts) { return std::max(Bytes{1}, std::ranges::max(facts.lifetimes.live)); }

std::optional<double> times_ideal(const Outcome& outcome, double seconds) {
  if (!outcome.feasible || outcome.ideal_seconds <= 0) return std::nullopt;
  return seconds / outcome.ideal_seconds;
}

std::optional<double> divided(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

}  // namespace

std::optional<double> percent_of_ideal(const Outcome& outcome) { return percent(outcome, outcome.ideal_seconds); }

std::optional<double> percent_computing(const Outcome& outcome) {
  return percent(outcome, std::max(0.0, outcome.ideal_seconds - outcome.hidden_seconds));
}

std::optional<double> percent_overlapped(const Outcome& outcome) {
  return percent(outcome, std::min(outcome.hidden_seconds, outcome.ideal_seconds));
}

std::optional<double> percent_stalled(const Outcome& outcome) {
  return percent(outcome, std::max(0.0, outcome.iteration_seconds - outcome.ideal_seconds));
}

std::optional<double> percent_waiting(const Outcome& outcome) { return percent(outcome, outcome.stall_seconds); }

std::optional<double> percent_slowed(const Outcome& outcome) {
  if (!outcome.feasible || outcome.kernels == 0) return std::nullopt;
  return 100 * static_cast<double>(outcome.slowed_kernels) / static_cast<double>(outcome.kernels);
}

std::optional<double> ssd_gigabytes(const Outcome& outcome) {
  return when_feasible(outcome,
                       gigabytes(outcome.moved(Tier::device, Tier::ssd) + outcome.moved(Tier::ssd, Tier::device)));
}

std::optional<double> host_gigabytes(const Outcome& outcome) {
  return when_feasible(outcome,
                       gigabytes(outcome.moved(Tier::device, Tier::host) + outcome.moved(Tier::host, Tier::device)));
}

std::optional<double> ssd_written_gigabytes(const Outcome& outcome) {
  return when_feasible(outcome,
                       gigabytes(outcome.moved(Tier::device, Tier::ssd) + outcome.moved(Tier::host, Tier::ssd)));
}

std::optional<double> written_gigabytes(const Outcome& outcome) {
  return when_feasible(outcome,
                       gigabytes(outcome.moved(Tier::device, Tier::ssd) + outcome.moved(Tier::device, Tier::host)));
}

std::optional<double> iteration_seconds(const Outcome& outcome) {
  return when_feasible(outcome, outcome.iteration_seconds);
}

std::optional<double> hundred_iterations_seconds(const Outcome& outcome) {
  return when_feasible(outcome, 100 * outcome.iteration_seconds);
}

std::optional<double> thousand_faulted_pages(const Outcome& outcome) {
  constexpr double kPages = static_cast<double>(kBlockBytes.value) / 4096;
  return when_feasible(outcome, static_cast<double>(outcome.faults) * kPages / 1000);
}

std::optional<double> flash_years(const Outcome& outcome) {
  return outcome.feasible ? outcome.flash_years : std::nullopt;
}

std::optional<double> memory_saving(const Outcome& outcome) {
  if (!outcome.feasible || outcome.unlimited_peak == Bytes{}) return std::nullopt;
  return 1 - (static_cast<double>(outcome.peak.value) / static_cast<double>(outcome.unlimited_peak.value));
}

std::optional<double> extra_overhead(const Outcome& outcome) { return times_ideal(outcome, outcome.iteration_seconds); }

std::optional<double> first_extra_overhead(const Outcome& outcome) {
  return times_ideal(outcome, outcome.first_iteration_seconds);
}

std::optional<double> cost_benefit(const Outcome& outcome) {
  return divided(memory_saving(outcome), extra_overhead(outcome));
}

TraceFacts::TraceFacts(const Trace& of)
    : trace(of), lifetimes(analyse_lifetimes(of)), character(characterise(of, lifetimes)) {}

double active_percent_of_peak(const TraceFacts& facts) { return 100 * facts.character.active_of_peak_mean; }

double kernels_below_tenth(const TraceFacts& facts) {
  const Bytes peak = peak_of(facts);
  const auto few =
      std::ranges::count_if(facts.lifetimes.working_set, [&](Bytes bytes) { return bytes.value < peak.value / 10; });
  return 100 * static_cast<double>(few) / static_cast<double>(facts.lifetimes.working_set.size());
}

double largest_kernel_gigabytes(const TraceFacts& facts) {
  return gigabytes(std::ranges::max(facts.lifetimes.working_set));
}

double peak_gigabytes(const TraceFacts& facts) { return gigabytes(std::ranges::max(facts.lifetimes.live)); }

// A row has `assoc` entries: a block and its successors, each a number of 8 bytes. The paper does not say how many.
double block_tables_megabytes(const TraceFacts& facts) {
  constexpr double kRows = 2048, kWays = 2, kSuccessors = 4, kNumber = 8;
  return static_cast<double>(facts.trace.kernels.size()) * kRows * kWays * (1 + kSuccessors) * kNumber / 1e6;
}

double percent_longer_than_100ms(const TraceFacts& facts) { return 100 * facts.character.longer_than_100ms; }

double percent_longer_than_10s(const TraceFacts& facts) { return 100 * facts.character.longer_than_10s; }

double percent_that_hide_swaps(const TraceFacts& facts) { return 100 * facts.character.hide_ssd_round_trip; }

double shortest_inactivity_microseconds(const TraceFacts& facts) {
  return 1e6 * seconds(facts.character.inactive_length.least);
}

double longest_inactivity_seconds(const TraceFacts& facts) { return seconds(facts.character.inactive_length.most); }

double smallest_inactive_bytes(const TraceFacts& facts) {
  return static_cast<double>(facts.character.inactive_bytes.least.value);
}

double largest_inactive_gigabytes(const TraceFacts& facts) { return gigabytes(facts.character.inactive_bytes.most); }

std::vector<CurvePoint> live_percent(const TraceFacts& facts) {
  return by_kernel(facts.lifetimes.live, peak_of(facts));
}

std::vector<CurvePoint> active_percent(const TraceFacts& facts) {
  return by_kernel(facts.lifetimes.working_set, peak_of(facts));
}

std::vector<CurvePoint> inactive_periods(const TraceFacts& facts) {
  const Timeline timeline = ideal_timeline(facts.trace);
  const auto place_of = [](double value) { return std::lround(kDotsOfTen * std::log10(value)); };
  std::map<std::pair<long, long>, CurvePoint> dots;
  for (const InactivePeriod& period : facts.lifetimes.periods) {
    if (period.last) continue;
    const CurvePoint dot{.x = std::max(seconds(time_of(period, timeline)), kShortestDrawn),
                         .y = static_cast<double>(facts.trace[period.tensor].bytes.value)};
    if (dot.y > 0) dots.emplace(std::pair(place_of(dot.x), place_of(dot.y)), dot);
  }
  std::vector<CurvePoint> points;
  for (const auto& [place, dot] : dots) points.push_back(dot);
  return points;
}

std::vector<CurvePoint> inactive_lengths(const TraceFacts& facts) {
  const Timeline timeline = ideal_timeline(facts.trace);
  std::vector<double> lengths;
  for (const InactivePeriod& period : facts.lifetimes.periods)
    if (!period.last) lengths.push_back(seconds(time_of(period, timeline)));
  std::ranges::sort(lengths);
  std::vector<CurvePoint> points;
  const std::size_t count = std::min(lengths.size(), kMostPoints);
  for (std::size_t n = 1; n <= count; ++n) {
    const std::size_t below = n * lengths.size() / count;
    points.push_back(
        {.x = lengths[below - 1], .y = 100 * static_cast<double>(below) / static_cast<double>(lengths.size())});
  }
  return points;
}

}  // namespace spillway
