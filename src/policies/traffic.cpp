#include "policies/traffic.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace spillway {
namespace {

std::vector<std::uint64_t> lesser(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  CHECK(a.size() == b.size());
  std::vector<std::uint64_t> result(a.size());
  std::ranges::transform(a, b, result.begin(), [](std::uint64_t x, std::uint64_t y) { return std::min(x, y); });
  return result;
}

}  // namespace

Traffic::Sums::Sums(std::span<const std::uint64_t> values)
    : size_(std::bit_ceil(std::max<std::uint32_t>(1, static_cast<std::uint32_t>(values.size())))), nodes_(2 * size_) {
  std::ranges::copy(values, nodes_.begin() + size_);
  for (std::uint32_t node = size_ - 1; node > 0; --node) nodes_[node] = nodes_[2 * node] + nodes_[2 * node + 1];
}

void Traffic::Sums::set(std::uint32_t index, std::uint64_t value) {
  std::uint32_t node = size_ + index;
  nodes_[node] = value;
  while (node /= 2) nodes_[node] = nodes_[2 * node] + nodes_[2 * node + 1];
}

std::uint64_t Traffic::Sums::prefix(std::uint32_t end) const {
  std::uint64_t sum = 0;
  for (std::uint32_t node = size_ + end; node > 1; node /= 2)
    if (node % 2 == 1) sum += nodes_[node - 1];
  return end == size_ ? total() : sum;
}

std::uint32_t Traffic::Sums::reach(std::uint64_t sum) const {
  CHECK(sum > 0 && sum <= total());
  std::uint32_t node = 1;
  while (node < size_) {
    node *= 2;
    if (nodes_[node] >= sum) continue;
    sum -= nodes_[node];
    ++node;
  }
  return node - size_ + 1;
}

Traffic::Traffic(std::vector<std::uint64_t> link, std::vector<std::uint64_t> ssd)
    : kernels_(static_cast<std::uint32_t>(link.size())),
      link_left_(std::move(link)),
      ssd_left_(std::move(ssd)),
      host_free_(link_left_),
      ssd_free_(lesser(link_left_, ssd_left_)),
      host_idle_(host_free_),
      ssd_idle_(ssd_free_) {}

const Traffic::Sums& Traffic::sums(Lane lane, bool idle) const {
  if (lane == Lane::host) return idle ? host_idle_ : host_free_;
  return idle ? ssd_idle_ : ssd_free_;
}

std::optional<std::uint32_t> Traffic::forward(Lane lane, std::uint32_t from, std::uint64_t bytes, std::uint32_t most,
                                              bool idle) const {
  const Sums& free = sums(lane, idle);
  if (bytes > free.total()) return std::nullopt;
  const std::uint64_t goal = free.prefix(from) + bytes;
  const std::uint32_t count =
      goal <= free.total() ? free.reach(goal) - from : kernels_ - from + free.reach(goal - free.total());
  return count <= most ? std::optional(count) : std::nullopt;
}

std::optional<std::uint32_t> Traffic::backward(Lane lane, std::uint32_t until, std::uint64_t bytes, std::uint32_t most,
                                               bool idle) const {
  const Sums& free = sums(lane, idle);
  if (bytes > free.total()) return std::nullopt;
  // The last start from which the sum up to `until` is still at least `bytes`.
  const auto start_of = [&](std::uint64_t sum) { return free.reach(sum + 1) - 1; };
  const std::uint64_t before = free.prefix(until);
  const std::uint32_t count =
      before >= bytes ? until - start_of(before - bytes) : until + kernels_ - start_of(before + free.total() - bytes);
  return count <= most ? std::optional(count) : std::nullopt;
}

void Traffic::take(Lane lane, std::uint32_t kernel, std::uint64_t bytes) {
  link_left_[kernel] -= bytes;
  if (lane == Lane::ssd) ssd_left_[kernel] -= bytes;
  host_free_.set(kernel, link_left_[kernel]);
  ssd_free_.set(kernel, std::min(link_left_[kernel], ssd_left_[kernel]));
}

void Traffic::book_forward(Lane lane, std::uint32_t from, std::uint64_t bytes) {
  const Sums& free = sums(lane, false);
  bytes = std::min(bytes, free.total());
  while (bytes > 0) {
    // The next kernel with anything left, so that full ones cost nothing.
    const std::uint64_t before = free.prefix(from);
    const std::uint32_t kernel = free.reach(before < free.total() ? before + 1 : 1) - 1;
    const std::uint64_t taken = std::min(bytes, free.at(kernel));
    take(lane, kernel, taken);
    bytes -= taken;
    from = (kernel + 1) % kernels_;
  }
}

void Traffic::book_backward(Lane lane, std::uint32_t until, std::uint64_t bytes) {
  const Sums& free = sums(lane, false);
  bytes = std::min(bytes, free.total());
  while (bytes > 0) {
    const std::uint64_t before = free.prefix(until);
    const std::uint32_t kernel = free.reach(before > 0 ? before : free.total()) - 1;
    const std::uint64_t taken = std::min(bytes, free.at(kernel));
    take(lane, kernel, taken);
    bytes -= taken;
    until = kernel;
  }
}

}  // namespace spillway
