#include "latency/features.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace spillway {
namespace {

double bytes_of(const Access& access) { return static_cast<double>((access.end - access.begin).value); }

double sum_of(const std::vector<Access>& accesses) {
  double sum = 0;
  for (const Access& access : accesses) sum += bytes_of(access);
  return sum;
}

float log_of(double value) { return static_cast<float>(std::log1p(value)); }

// The last sizes come last: [5, 7] is 0, 0, 5, 7.
void put_sizes(const Sizes& sizes, std::span<float, kSizesOfShape> features) {
  std::array<double, kSizesOfShape> kept{};
  for (std::size_t behind = 0; behind < sizes.size(); ++behind) {
    const auto size = static_cast<double>(sizes[sizes.size() - 1 - behind]);
    if (behind < kSizesOfShape)
      kept[kSizesOfShape - 1 - behind] = size;
    else
      kept[0] *= size;
  }
  std::ranges::transform(kept, features.begin(), log_of);
}

}  // namespace

Features features_of(const Kernel& kernel) {
  double largest = 0;
  for (const Access& read : kernel.reads) largest = std::max(largest, bytes_of(read));
  Features features{log_of(largest), log_of(sum_of(kernel.reads) - largest), log_of(sum_of(kernel.writes)),
                    log_of(kernel.flops.value_or(0))};
  constexpr std::size_t kBeforeShapes = kFeatureNames.size() - kShapes * kSizesOfShape;
  for (std::size_t at = 0; at < std::min(kShapes, kernel.shapes.size()); ++at)
    put_sizes(kernel.shapes[at],
              std::span<float, kSizesOfShape>(features.data() + kBeforeShapes + at * kSizesOfShape, kSizesOfShape));
  return features;
}

double bytes_moved(const Kernel& kernel) { return sum_of(kernel.reads) + sum_of(kernel.writes); }

std::string_view class_of(std::string_view kernel_name) {
  const std::size_t last = kernel_name.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == kernel_name.size() || last == 0) return kernel_name;
  const bool is_numbered = std::string_view("_.:#-").contains(kernel_name[last]);
  return is_numbered ? kernel_name.substr(0, last) : kernel_name;
}

}  // namespace spillway
