#include <algorithm>

#include "base/median.h"
#include "hook/recorder/iteration.h"

namespace spillway {

void KernelTimes::add(const KernelTime& time) {
  const auto average = [&](Nanos old, Nanos newest) {
    const auto most = [](Nanos usual) { return usual * kMostTimes + kAlwaysPossible; };
    newest = std::min(newest, most(old));
    if (averaged_ == 1) old = std::min(old, most(newest));
    return Nanos{static_cast<std::uint64_t>(static_cast<double>(old.value) * (1 - kNewest) +
                                            static_cast<double>(newest.value) * kNewest)};
  };
  average_ =
      averaged_ > 0 ? KernelTime{average(average_.duration, time.duration), average(average_.gap, time.gap)} : time;
  ++averaged_;
  if (seen_++ % stride_ != 0) return;
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
