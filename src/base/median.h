#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/check.h"

namespace spillway {

// The one in the middle, of an even number the upper one of the two. Needs at least one.
template <class Value, class Projection = std::identity>
Value median(std::vector<Value> values, Projection projection = {}) {
  CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle, {}, projection);
  return *middle;
}

}  // namespace spillway
