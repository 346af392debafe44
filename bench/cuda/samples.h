#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace spillway::probe {

// Measured values of one thing.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  std::size_t count() const { return values_.size(); }
  double median() const { return quantile(0.5); }
  double p99() const { return quantile(0.99); }

 private:
  // The smallest value that at least this part of all does not exceed; 0 if there are none.
  double quantile(double part) const {
    if (values_.empty()) return 0;
    std::vector<double> sorted = values_;
    std::ranges::sort(sorted);
    const auto at = static_cast<std::size_t>(part * static_cast<double>(sorted.size()));
    return sorted[std::min(at, sorted.size() - 1)];
  }
  std::vector<double> values_;
};

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// How long the call takes, in microseconds.
template <class Call>
double microseconds(Call&& call) {
  const auto begin = Clock::now();
  call();
  return seconds_since(begin) * 1e6;
}

}  // namespace spillway::probe
