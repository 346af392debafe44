#include "recorder/follower.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spillway {

Follower::Follower(std::vector<std::uint64_t> signatures, std::vector<std::uint32_t> anchors)
    : signatures_(std::move(signatures)), anchors_(std::move(anchors)) {
  CHECK(std::ranges::is_sorted(anchors_) && (anchors_.empty() || anchors_.back() <= signatures_.size()));
  for (std::uint32_t kernel = 0; kernel < signatures_.size(); ++kernel) places_[signatures_[kernel]].push_back(kernel);
}

std::optional<std::uint32_t> Follower::next(std::uint64_t signature) {
  if (at_ < signatures_.size() && signatures_[at_] == signature) {
    agreed_ = 0;
    return at_++;
  }
  // Kernels may have been left out: the nearest place ahead where this and the next ones agree.
  if (agreed_ > 0 && ahead_ < signatures_.size() && signatures_[ahead_] == signature) {
    ++ahead_;
    if (++agreed_ < kSure) return std::nullopt;
    agreed_ = 0;
    at_ = ahead_;
    return at_ - 1;
  }
  agreed_ = 0;
  const auto known = places_.find(signature);
  if (known == places_.end()) return std::nullopt;
  const auto place = std::ranges::upper_bound(known->second, at_);
  if (place == known->second.end()) return std::nullopt;
  ahead_ = *place + 1;
  agreed_ = 1;
  return std::nullopt;
}

void Follower::anchor(std::optional<std::size_t> steps_done) {
  agreed_ = 0;
  if (steps_done) {
    CHECK(*steps_done <= anchors_.size());
    at_ = *steps_done == 0 ? 0 : anchors_[*steps_done - 1];
    return;
  }
  // Within the iteration where it is there; else it begins again.
  if (at_ == signatures_.size() || std::ranges::find(anchors_, at_) == anchors_.end()) at_ = 0;
}

}  // namespace spillway
