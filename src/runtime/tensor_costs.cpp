#include "runtime/tensor_costs.h"

#include <algorithm>
#include <utility>

namespace spillway {
namespace {

using ByLabel = std::unordered_map<TensorLabel, TensorCost>;

void add(ByLabel& all, const TensorCost& tensor) {
  const auto [found, is_new] = all.try_emplace(tensor.label, tensor);
  if (is_new) return;
  found->second.bytes = std::max(found->second.bytes, tensor.bytes);
  found->second.moved += tensor.moved;
}

bool is_higher(const TensorCost& a, const TensorCost& b) {
  return std::pair(a.moved.all, b.label) > std::pair(b.moved.all, a.label);
}

std::vector<TensorCost> sorted(const ByLabel& all, std::size_t count) {
  std::vector<TensorCost> result;
  for (const auto& [label, tensor] : all) result.push_back(tensor);
  const auto end = result.begin() + static_cast<std::ptrdiff_t>(std::min(count, result.size()));
  std::partial_sort(result.begin(), end, result.end(), is_higher);
  result.erase(end, result.end());
  return result;
}

}  // namespace

void TensorCosts::died(const TensorCost& tensor) {
  if (tensor.moved.all == Bytes{}) return;
  const MutexLock lock(mutex_);
  add(dead_, tensor);
  if (dead_.size() < kMost) return;
  ByLabel kept;
  for (const TensorCost& high : sorted(dead_, kMost / 2)) kept.emplace(high.label, high);
  dead_ = std::move(kept);
}

std::vector<TensorCost> TensorCosts::highest(std::size_t count, std::span<const TensorCost> alive) const {
  const MutexLock lock(mutex_);
  ByLabel all = dead_;
  for (const TensorCost& tensor : alive)
    if (tensor.moved.all > Bytes{}) add(all, tensor);
  return sorted(all, count);
}

}  // namespace spillway
