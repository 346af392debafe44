#include "roofline/operations.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

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

// Of an element of that argument, as far as its whole is read; FP32's elsewhere, as of a view with gaps.
double element_bytes(const Kernel& kernel, std::size_t argument = 0) {
  constexpr double kUsual = 4;
  if (kernel.shapes.size() <= argument || kernel.reads.size() <= argument) return kUsual;
  const double each = bytes_of(kernel.reads[argument]) / std::max(elements_of(kernel.shapes[argument]), 1.0);
  constexpr std::array kSizes{1.0, 2.0, 4.0, 8.0, 16.0};
  return std::ranges::find(kSizes, each) != kSizes.end() ? each : kUsual;
}

double elements_touched(const Kernel& kernel) { return bytes_touched(kernel) / element_bytes(kernel); }

double largest_write(const Kernel& kernel) {
  double largest = 0;
  for (const Access& access : kernel.writes) largest = std::max(largest, bytes_of(access));
  return largest;
}

// The backward pass of a transposed convolution has the same name and the same arguments as that of an ordinary one,
// whose weight begins with the channels of its output.
bool is_transposed(const Sizes& gradient, const Sizes& input, const Sizes& weight) {
  if (gradient.size() < 2 || input.size() < 2 || weight[0] != input[1]) return false;
  return weight[0] != gradient[1] ||
         elements_of(std::span(gradient).subspan(2)) > elements_of(std::span(input).subspan(2));
}

// The weight of a convolution is [out, in / groups, window...]: each element of the output sums over all but the first.
// That of a transposed one is [in, out / groups, window...]: each element of the input is added to all but the first.
// A weight is dense; what it meets may be a view with gaps.
double convolution(const Kernel& kernel, std::string_view name) {
  const bool is_backward = name.ends_with(kBackward);
  const std::size_t weight = is_backward ? 2 : 1;
  if (kernel.shapes.size() <= weight || kernel.shapes[weight].empty()) return elements_touched(kernel);
  const double window = elements_of(std::span(kernel.shapes[weight]).subspan(1)), item = element_bytes(kernel, weight);
  if (name.starts_with("conv_transpose")) return 2 * window * elements_of(kernel.shapes[0]);
  if (!is_backward) return 2 * window * largest_write(kernel) / item;
  // One such product for each gradient that is made, that of the bias aside.
  const bool transposed = is_transposed(kernel.shapes[0], kernel.shapes[1], kernel.shapes[weight]);
  const double once = 2 * window * elements_of(kernel.shapes[transposed ? 1 : 0]);
  const auto makes = [&](std::size_t shape) {
    return std::ranges::any_of(kernel.writes, [&](const Access& access) {
      return bytes_of(access) == item * elements_of(kernel.shapes[shape]);
    });
  };
  return once * std::max(1, int{makes(1)} + int{makes(weight)});
}

// As far as there are so many; 1 before that.
double size_from_last(const Sizes& sizes, std::size_t place) {
  return place < sizes.size() ? static_cast<double>(sizes[sizes.size() - 1 - place]) : 1;
}

// a [..., m, k] times b [..., k, n]; either may lack dimensions, or be broadcast, even both.
double product_of(const Sizes& a, const Sizes& b) {
  const double columns = b.size() >= 2 ? size_from_last(b, 0) : 1;
  double operations = 2 * size_from_last(a, 0) * size_from_last(a, 1) * columns;
  for (std::size_t place = 2; place < std::max(a.size(), b.size()); ++place) {
    const double size = size_from_last(a, place);
    operations *= size == 1 ? size_from_last(b, place) : size;
  }
  return operations;
}

// Rows, columns or what is summed over are split into groups, each of which meets its own part of the other side. Only
// where both sides have a dimension of groups is each of them a whole product.
double grouped_product_of(const Sizes& a, const Sizes& b) {
  const double one = 2 * size_from_last(a, 1) * size_from_last(a, 0) * size_from_last(b, 0);
  return a.size() == 3 && b.size() == 3 ? one * size_from_last(a, 2) : one;
}

constexpr std::array<std::string_view, 3> kSumsOverAnything{"einsum", "tensordot", "inner"};

// Of m x k and k x n elements come m x n: their product is the square of m x k x n, whichever dimensions these are.
// Nobody tells a batch, which both sides and the result have, from other dimensions: one of 16 counts four times.
double sum_over_anything(const Kernel& kernel) {
  const double written = largest_write(kernel) / element_bytes(kernel);
  return 2 * std::sqrt(elements_of(kernel.shapes[0]) * elements_of(kernel.shapes[1]) * written);
}

bool is_one_of(std::string_view name, std::span<const std::string_view> all) {
  return std::ranges::find(all, name) != all.end();
}

double product(const Kernel& kernel, std::string_view name) {
  const std::size_t first = name.contains("add") ? 1 : 0;  // The first argument is what it adds to.
  if (kernel.shapes.size() < first + 2) return elements_touched(kernel);
  const Sizes &a = kernel.shapes[first], &b = kernel.shapes[first + 1];
  if (name == "linear")  // The weight is [out, in].
    return 2 * elements_of(a) * (b.size() >= 2 ? static_cast<double>(b.front()) : 1);
  if (is_one_of(name, kSumsOverAnything))
    return kernel.shapes.size() == 2 ? sum_over_anything(kernel) : elements_touched(kernel);
  return name == "_grouped_mm" ? grouped_product_of(a, b) : product_of(a, b);
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
  constexpr std::array<std::string_view, 16> kProducts{
      "mm",    "bmm", "addmm", "baddbmm",           "addbmm",      "addmm_",    "baddbmm_", "linear", "matmul", "mv",
      "addmv", "dot", "vdot",  "_addmm_activation", "_grouped_mm", "_scaled_mm"};
  constexpr std::array<std::string_view, 6> kRecurrent{
      "lstm", "gru", "rnn_tanh", "rnn_relu", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"};
  const std::string_view name = plain_name(kernel_name);
  if (name.starts_with("conv") || name.starts_with("_convolution") || name.starts_with("mkldnn_convolution") ||
      name.starts_with("cudnn_convolution"))
    return OperatorClass::convolution;
  if (is_one_of(name, kProducts) || is_one_of(name, kSumsOverAnything)) return OperatorClass::product;
  if (name.contains("scaled_dot_product")) return OperatorClass::attention;
  if (is_one_of(name, kRecurrent)) return OperatorClass::recurrent;
  if (name.contains("_norm") || name.contains("softmax")) return OperatorClass::normalization;
  if (name.contains("_pool")) return OperatorClass::pooling;
  return OperatorClass::elementwise;
}

double bytes_touched(const Kernel& kernel) {
  double dense = 0, largest_dense = 0, sparse = 0;
  for (const auto* accesses : {&kernel.reads, &kernel.writes})
    for (const Access& access : *accesses) {
      const double bytes = bytes_of(access);
      (access.sparse ? sparse : dense) += bytes;
      if (!access.sparse) largest_dense = std::max(largest_dense, bytes);
    }
  return dense + (dense == 0 ? sparse : std::min(sparse, largest_dense));
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
