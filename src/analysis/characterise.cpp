#include "analysis/characterise.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "analysis/timeline.h"

namespace spillway {
namespace {

// The value at the given share of the way through `sorted`, by nearest rank.
template <class T>
T at_share(const std::vector<T>& sorted, double share) {
  if (sorted.empty()) return T{};
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(last * share))];
}

template <class T>
Quantiles<T> quantiles(std::vector<T> values) {
  std::ranges::sort(values);
  return {.least = at_share(values, 0),
          .tenth = at_share(values, 0.1),
          .median = at_share(values, 0.5),
          .ninetieth = at_share(values, 0.9),
          .most = at_share(values, 1)};
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double share_of(Bytes part, Bytes whole) {
  return whole.value == 0 ? 0 : static_cast<double>(part.value) / static_cast<double>(whole.value);
}

double share_longer(const std::vector<Nanos>& lengths, Nanos limit) {
  if (lengths.empty()) return 0;
  const auto longer = std::ranges::count_if(lengths, [&](Nanos length) { return length > limit; });
  return static_cast<double>(longer) / static_cast<double>(lengths.size());
}

Nanos ssd_round_trip(Bytes size) {
  return transfer_time(size, kG10SsdWrite) + kG10SsdWriteLatency + transfer_time(size, kG10SsdRead) +
         kG10SsdReadLatency;
}

void add_active_bytes(const Lifetimes& lifetimes, Characterisation& result) {
  std::vector<double> of_live, of_peak;
  const Bytes peak = lifetimes.live.empty() ? Bytes{} : std::ranges::max(lifetimes.live);
  for (std::size_t k = 0; k < lifetimes.live.size(); ++k) {
    of_live.push_back(share_of(lifetimes.working_set[k], lifetimes.live[k]));
    of_peak.push_back(share_of(lifetimes.working_set[k], peak));
  }
  std::ranges::sort(of_live);
  std::ranges::sort(of_peak);
  result.active_of_live_mean = mean(of_live);
  result.active_of_live_median = at_share(of_live, 0.5);
  result.active_of_live_most = at_share(of_live, 1);
  result.active_of_peak_mean = mean(of_peak);
  result.active_of_peak_median = at_share(of_peak, 0.5);
  result.active_of_peak_most = at_share(of_peak, 1);
}

}  // namespace

Characterisation characterise(const Trace& trace, const Lifetimes& lifetimes) {
  Characterisation result;
  add_active_bytes(lifetimes, result);
  const Timeline timeline = ideal_timeline(trace);
  std::vector<Nanos> lengths;
  std::vector<Bytes> sizes;
  std::size_t hidden = 0;
  for (const InactivePeriod& period : lifetimes.periods) {
    if (period.last) continue;
    lengths.push_back(time_of(period, timeline));
    sizes.push_back(trace[period.tensor].bytes);
    if (lengths.back() >= ssd_round_trip(sizes.back())) ++hidden;
  }
  result.longer_than_20us = share_longer(lengths, Nanos{20'000});
  result.longer_than_100ms = share_longer(lengths, Nanos{100'000'000});
  result.longer_than_10s = share_longer(lengths, Nanos{10'000'000'000});
  if (!lengths.empty()) result.hide_ssd_round_trip = static_cast<double>(hidden) / static_cast<double>(lengths.size());
  result.inactive_length = quantiles(std::move(lengths));
  result.inactive_bytes = quantiles(std::move(sizes));
  return result;
}

std::vector<Moment> heaviest_moments(const Lifetimes& lifetimes, std::size_t most) {
  const std::vector<Bytes>& live = lifetimes.live;
  std::vector<std::uint32_t> kernels(live.size());
  std::iota(kernels.begin(), kernels.end(), 0u);
  std::ranges::stable_sort(kernels, [&](std::uint32_t a, std::uint32_t b) { return live[a] > live[b]; });
  const auto apart = static_cast<std::int64_t>(live.size() / 50);
  std::vector<Moment> moments;
  for (const std::uint32_t k : kernels) {
    if (moments.size() == most) break;
    const bool near_another = std::ranges::any_of(moments, [&](const Moment& moment) {
      return std::abs(static_cast<std::int64_t>(moment.kernel.value) - static_cast<std::int64_t>(k)) < apart;
    });
    if (!near_another)
      moments.push_back({.kernel = KernelId{k}, .live = live[k], .working_set = lifetimes.working_set[k]});
  }
  return moments;
}

}  // namespace spillway
