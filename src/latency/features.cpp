#include "latency/features.h"

#include <algorithm>
#include <cmath>

namespace spillway {
namespace {

double bytes_of(const Access& access) { return static_cast<double>((access.end - access.begin).value); }

double sum_of(const std::vector<Access>& accesses) {
  double sum = 0;
  for (const Access& access : accesses) sum += bytes_of(access);
  return sum;
}

}  // namespace

Features features_of(const Kernel& kernel) {
  double largest = 0;
  for (const Access& read : kernel.reads) largest = std::max(largest, bytes_of(read));
  const auto log_of = [](double value) { return static_cast<float>(std::log1p(value)); };
  return {log_of(largest), log_of(sum_of(kernel.reads) - largest), log_of(sum_of(kernel.writes)),
          log_of(kernel.flops.value_or(0))};
}

double bytes_moved(const Kernel& kernel) { return sum_of(kernel.reads) + sum_of(kernel.writes); }

std::string_view class_of(std::string_view kernel_name) {
  const std::size_t last = kernel_name.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == kernel_name.size() || last == 0) return kernel_name;
  const bool is_numbered = std::string_view("_.:#-").contains(kernel_name[last]);
  return is_numbered ? kernel_name.substr(0, last) : kernel_name;
}

}  // namespace spillway
