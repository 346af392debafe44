#include "policies/pressure.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace spillway {
namespace {

// Padding behind the last kernel: no weight, and below anything that is asked for.
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::min() / 4;

}  // namespace

Pressure::Pressure(std::span<const std::int64_t> values, std::span<const std::uint64_t> weights)
    : size_(std::bit_ceil(std::max<std::uint32_t>(1, static_cast<std::uint32_t>(values.size())))), nodes_(2 * size_) {
  CHECK(values.size() == weights.size());
  for (std::uint32_t leaf = 0; leaf < size_; ++leaf) {
    const bool real = leaf < values.size();
    const std::int64_t value = real ? values[leaf] : kNowhere;
    const std::uint64_t weight = real ? weights[leaf] : 0;
    nodes_[size_ + leaf] = {value, value, 0, weight, static_cast<Wide>(value) * weight};
  }
  for (std::uint32_t node = size_ - 1; node > 0; --node) {
    nodes_[node].weight = nodes_[2 * node].weight + nodes_[2 * node + 1].weight;
    pull(node);
  }
}

void Pressure::pull(std::uint32_t node) {
  Node& parent = nodes_[node];
  const Node& left = nodes_[2 * node];
  const Node& right = nodes_[2 * node + 1];
  parent.min = std::min(left.min, right.min) + parent.pending;
  parent.max = std::max(left.max, right.max) + parent.pending;
  parent.weighted = left.weighted + right.weighted + static_cast<Wide>(parent.pending) * parent.weight;
}

void Pressure::add(std::uint32_t begin, std::uint32_t end, std::int64_t amount) {
  if (begin < end) add(1, 0, size_, begin, end, amount);
}

void Pressure::add(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::uint32_t begin, std::uint32_t end,
                   std::int64_t amount) {
  if (end <= low || high <= begin) return;
  Node& here = nodes_[node];
  if (begin <= low && high <= end) {
    here.min += amount;
    here.max += amount;
    here.weighted += static_cast<Wide>(amount) * here.weight;
    here.pending += amount;
    return;
  }
  const std::uint32_t middle = (low + high) / 2;
  add(2 * node, low, middle, begin, end, amount);
  add(2 * node + 1, middle, high, begin, end, amount);
  pull(node);
}

std::int64_t Pressure::max(std::uint32_t begin, std::uint32_t end) const {
  return begin < end ? max(1, 0, size_, begin, end, 0) : kNowhere;
}

std::int64_t Pressure::max(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::uint32_t begin,
                           std::uint32_t end, std::int64_t pending) const {
  if (end <= low || high <= begin) return kNowhere;
  const Node& here = nodes_[node];
  if (begin <= low && high <= end) return here.max + pending;
  const std::uint32_t middle = (low + high) / 2;
  const std::int64_t down = pending + here.pending;
  return std::max(max(2 * node, low, middle, begin, end, down), max(2 * node + 1, middle, high, begin, end, down));
}

struct Pressure::Benefit {
  std::uint32_t begin, end;
  std::int64_t size;
  std::uint64_t steps = 0;
};

Pressure::Wide Pressure::benefit(std::uint32_t begin, std::uint32_t end, std::int64_t size,
                                 std::uint64_t& steps) const {
  if (begin >= end) return 0;
  Benefit asked{begin, end, size};
  const Wide sum = benefit(1, 0, size_, 0, asked);
  steps += asked.steps;
  return sum;
}

Pressure::Wide Pressure::benefit(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::int64_t pending,
                                 Benefit& asked) const {
  ++asked.steps;
  if (asked.end <= low || high <= asked.begin) return 0;
  const Node& here = nodes_[node];
  if (here.max + pending <= 0) return 0;
  if (asked.begin <= low && high <= asked.end) {
    const Wide weighted = here.weighted + static_cast<Wide>(pending) * here.weight;
    const Wide most = static_cast<Wide>(asked.size) * here.weight;
    if (here.min + pending >= asked.size) return most;
    if (here.min + pending >= 0 && here.max + pending <= asked.size) return weighted;
    if (asked.steps > kMostSteps) return std::clamp<Wide>(weighted, 0, most);
  }
  const std::uint32_t middle = (low + high) / 2;
  const std::int64_t down = pending + here.pending;
  const Wide first = benefit(2 * node, low, middle, down, asked);
  return first + benefit(2 * node + 1, middle, high, down, asked);
}

std::uint32_t Pressure::run_before(std::uint32_t begin, std::uint32_t end, std::int64_t limit) const {
  if (begin >= end) return end;
  const std::int64_t last = last_above(1, 0, size_, begin, end, limit, 0);
  return last < 0 ? begin : static_cast<std::uint32_t>(last) + 1;
}

// The last index of the range whose value is above the limit, or -1.
std::int64_t Pressure::last_above(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::uint32_t begin,
                                  std::uint32_t end, std::int64_t limit, std::int64_t pending) const {
  const Node& here = nodes_[node];
  if (end <= low || high <= begin || here.max + pending <= limit) return -1;
  if (high - low == 1) return low;
  const std::uint32_t middle = (low + high) / 2;
  const std::int64_t down = pending + here.pending;
  const std::int64_t right = last_above(2 * node + 1, middle, high, begin, end, limit, down);
  return right >= 0 ? right : last_above(2 * node, low, middle, begin, end, limit, down);
}

}  // namespace spillway
