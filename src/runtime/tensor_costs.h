#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/units.h"
#include "runtime/block_traffic.h"

namespace spillway {

struct TensorCost {
  TensorLabel label{};
  std::string_view maker;  // the kernel that made it; lives as long as the process. Empty: made by none
  Bytes bytes;             // of the largest one
  MovedBytes moved;        // of all of them
};

// What it has cost so far to hold tensors within the budget, by how they came to be: those that play the same part in
// each iteration are one. Any thread; the lock is a leaf.
class TensorCosts {
 public:
  void died(const TensorCost& tensor);
  // Those of which the most has moved, first; only such of which anything has. `alive`: those that live now.
  std::vector<TensorCost> highest(std::size_t count, std::span<const TensorCost> alive) const;

 private:
  // A script that never repeats itself makes no end of them: then the cheaper half is forgotten.
  static constexpr std::size_t kMost = std::size_t{1} << 16;

  mutable Mutex mutex_;
  std::unordered_map<TensorLabel, TensorCost> dead_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
