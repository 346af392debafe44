#include "roofline/operations.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "latency/features.h"

namespace spillway {
namespace {

double bytes_of(const Access& access) { return static_cast<double>((access.end - access.begin).value); }

double elements_of(std::span<const std::uint64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0,
                         [](double product, std::uint64_t size) { return product * static_cast<double>(size); });
}

// "aten::add_.Tensor" is "add_".
std::string_view plain_name(std::string_view name) {
  if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  return name.substr(0, name.find('.'));
}

constexpr std::string_view kBackward = "_backward";

// Of an element of the first tensor, as far as its whole is read; FP32's elsewhere.
double element_bytes(const Kernel& kernel) {
  constexpr double kUsual = 4;
  if (kernel.shapes.empty() || kernel.reads.empty()) return kUsual;
  const double each = bytes_of(kernel.reads.front()) / std::max(elements_of(kernel.shapes.front()), 1.0);
  constexpr std::array kSizes{1.0, 2.0, 4.0, 8.0, 16.0};
  return std::ranges::find(kSizes, each) != kSizes.end() ? each : kUsual;
}

double elements_touched(const Kernel& kernel) { return bytes_moved(kernel) / element_bytes(kernel); }

// The weight of a convolution is [out, in / groups, window...]: each element of the output sums over all but the first.
double convolution(const Kernel& kernel, std::string_view name) {
  const bool is_backward = name.ends_with(kBackward);
  const std::size_t weight = is_backward ? 2 : 1;
  if (kernel.shapes.size() <= weight || kernel.shapes[weight].empty()) return elements_touched(kernel);
  const double window = elements_of(std::span(kernel.shapes[weight]).subspan(1));
  if (name.starts_with("conv_transpose")) return 2 * window * elements_of(kernel.shapes[0]);
  double written = 0;
  for (const Access& access : kernel.writes) written = std::max(written, bytes_of(access));
  if (!is_backward) return 2 * window * written / element_bytes(kernel);
  // One such product for each gradient that is made, that of the bias aside.
  const double once = 2 * window * elements_of(kernel.shapes[0]), item = element_bytes(kernel);
  const auto makes = [&](std::size_t shape) {
    return std::ranges::any_of(kernel.writes, [&](const Access& access) {
      return bytes_of(access) == item * elements_of(kernel.shapes[shape]);
    });
  };
  return once * std::max(1, int{makes(1)} + int{makes(weight)});
}

// a [..., m, k] times b [..., k, n]; either may lack dimensions, or be broadcast.
double product_of(const Sizes& a, const Sizes& b) {
  const double rows = a.size() >= 2 ? static_cast<double>(a[a.size() - 2]) : 1;
  const double columns = b.size() >= 2 ? static_cast<double>(b.back()) : 1;
  return 2 * std::max(elements_of(a) * columns, elements_of(b) * rows);
}

double product(const Kernel& kernel, std::string_view name) {
  const bool adds = name.starts_with("add") || name.starts_with("baddbmm");  // the first argument is what it adds to
  const std::size_t first = adds ? 1 : 0;
  if (kernel.shapes.size() < first + 2) return elements_touched(kernel);
  const Sizes &a = kernel.shapes[first], &b = kernel.shapes[first + 1];
  if (name != "linear") return product_of(a, b);
  return 2 * elements_of(a) * (b.size() >= 2 ? static_cast<double>(b.front()) : 1);  // The weight is [out, in].
}

// query [..., l, e], key [..., s, e], value [..., s, v]: two products, of which the backward pass makes five.
double attention(const Kernel& kernel, std::string_view name) {
  const bool is_backward = name.ends_with(kBackward);
  const std::size_t first = is_backward ? 1 : 0;
  if (kernel.shapes.size() < first + 3) return elements_touched(kernel);
  const Sizes &query = kernel.shapes[first], &key = kernel.shapes[first + 1], &value = kernel.shapes[first + 2];
  if (query.size() < 2 || key.size() < 2 || value.size() < 2) return elements_touched(kernel);
  const double scores =
      elements_of(std::span(query).first(query.size() - 1)) * static_cast<double>(key[key.size() - 2]);
  const double both = 2 * scores * static_cast<double>(query.back() + value.back());
  return is_backward ? 2.5 * both : both;
}

// Each weight, the tensors of two dimensions, meets each step of each sequence once.
double recurrent(const Kernel& kernel, std::string_view name) {
  if (kernel.shapes.size() < 2 || kernel.shapes[0].size() < 2) return elements_touched(kernel);
  const std::span<const std::uint64_t> input(kernel.shapes[0]);
  double weights = 0;
  for (const Sizes& sizes : std::span(kernel.shapes).subspan(1))
    if (sizes.size() == 2) weights += elements_of(sizes);
  const double forward = 2 * elements_of(input.first(input.size() - 1)) * weights;
  return name.ends_with(kBackward) ? 2 * forward : forward;
}

bool is_one_of(std::string_view name, std::span<const std::string_view> all) {
  return std::ranges::find(all, name) != all.end();
}

}  // namespace

std::string_view to_text(OperatorClass operators) {
  switch (operators) {
    case OperatorClass::convolution:
      return "convolution";
    case OperatorClass::product:
      return "matrix product";
    case OperatorClass::attention:
      return "attention";
    case OperatorClass::recurrent:
      return "recurrent";
    case OperatorClass::normalization:
      return "normalization";
    case OperatorClass::pooling:
      return "pooling";
    case OperatorClass::elementwise:
      return "other";
  }
  return "?";
}

OperatorClass operator_class_of(std::string_view kernel_name) {
  constexpr std::array<std::string_view, 13> kProducts{
      "mm",     "bmm",    "addmm", "baddbmm", "addbmm", "addmm_",           "baddbmm_",
      "linear", "matmul", "mv",    "addmv",   "dot",    "_addmm_activation"};
  constexpr std::array<std::string_view, 6> kRecurrent{
      "lstm", "gru", "rnn_tanh", "rnn_relu", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"};
  const std::string_view name = plain_name(kernel_name);
  if (name.starts_with("conv") || name.starts_with("_convolution") || name.starts_with("mkldnn_convolution") ||
      name.starts_with("cudnn_convolution"))
    return OperatorClass::convolution;
  if (is_one_of(name, kProducts)) return OperatorClass::product;
  if (name.contains("scaled_dot_product")) return OperatorClass::attention;
  if (is_one_of(name, kRecurrent)) return OperatorClass::recurrent;
  if (name.contains("_norm") || name.contains("softmax")) return OperatorClass::normalization;
  if (name.contains("_pool")) return OperatorClass::pooling;
  return OperatorClass::elementwise;
}

double operations_of(const Kernel& kernel) {
  if (kernel.flops) return *kernel.flops;
  const std::string_view name = plain_name(kernel.name);
  switch (operator_class_of(kernel.name)) {
    case OperatorClass::convolution:
      return convolution(kernel, name);
    case OperatorClass::product:
      return product(kernel, name);
    case OperatorClass::attention:
      return attention(kernel, name);
    case OperatorClass::recurrent:
      return recurrent(kernel, name);
    default:
      return elements_touched(kernel);
  }
}

}  // namespace spillway
