#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace spillway {

// The shapes that operators have been given, each list once: events refer to them. Not thread-safe.
class KnownShapes {
 public:
  // By the hash of what is in `flat`: of each tensor how many dimensions it has, then their sizes. Null where no more
  // are kept: a script may have others for ever.
  const std::vector<Sizes>* find_or_add(std::uint64_t hash, std::span<const std::int64_t> flat) {
    const auto known = known_.find(hash);
    if (known != known_.end()) return &known->second;
    if (flat.size() + 1 > left_) return nullptr;
    left_ -= flat.size() + 1;
    std::vector<Sizes>& shapes = known_[hash];
    for (std::size_t at = 0; at < flat.size();) {
      const auto sizes = flat.subspan(at + 1, static_cast<std::size_t>(flat[at]));
      shapes.emplace_back(sizes.begin(), sizes.end());
      at += 1 + sizes.size();
    }
    return &shapes;
  }

 private:
  std::unordered_map<std::uint64_t, std::vector<Sizes>> known_;
  std::size_t left_ = std::size_t{1} << 20;  // numbers
};

}  // namespace spillway
