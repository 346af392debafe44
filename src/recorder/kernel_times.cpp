#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/median.h"
#include "recorder/iteration.h"

namespace spillway {

Nanos KernelTimes::follow(Nanos average, Nanos newest, Nanos last, Nanos before_last) const {
  if (averaged_ == 0) return newest;
  if (averaged_ == 2) return spillway::median(std::vector{newest, last, before_last});
  // If it is much longer, and goes on, it counts from the second time on.
  if (averaged_ > 2) newest = std::min(newest, std::max(average * kMostGrowth + kAllowance, last));
  return Nanos{static_cast<std::uint64_t>(static_cast<double>(average.value) * (1 - kNewest) +
                                          static_cast<double>(newest.value) * kNewest)};
}

void KernelTimes::add(const KernelTime& time) {
  average_ = {follow(average_.duration, time.duration, last_.duration, before_last_.duration),
              follow(average_.gap, time.gap, last_.gap, before_last_.gap)};
  ++averaged_;
  before_last_ = std::exchange(last_, time);
  if (seen_++ % stride_ != 0) return;
  CHECK(durations_.size() == gaps_.size() && durations_.size() <= kMost);
  if (durations_.size() == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      durations_[i] = durations_[2 * i];
      gaps_[i] = gaps_[2 * i];
    }
    durations_.resize(kMost / 2);
    gaps_.resize(kMost / 2);
    stride_ *= 2;
  }
  durations_.push_back(time.duration);
  gaps_.push_back(time.gap);
}

KernelTime KernelTimes::median() const {
  if (durations_.empty()) return {};
  return {spillway::median(durations_), spillway::median(gaps_)};
}

std::vector<const Segment*> pointers(const std::vector<Segment>& segments) {
  std::vector<const Segment*> result;
  for (const Segment& segment : segments) result.push_back(&segment);
  return result;
}

}  // namespace spillway
