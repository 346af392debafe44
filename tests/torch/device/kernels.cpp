// Operators that no device has unless it brings them.

#include <ATen/ATen.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "cpu_views.h"
#include "generator.h"

namespace spillway {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Three first_three(const Tensors& all) { return {all[0], all[1], all[2]}; }
Tensor or_none(const std::optional<Tensor>& tensor) { return tensor.value_or(Tensor()); }
std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                   bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  return compute("aten::convolution", {input, weight, or_none(bias)}, [&](const Tensors& on_cpu) -> Tensors {
    return {at::convolution_symint(on_cpu[0], on_cpu[1], if_defined(on_cpu[2]), stride, padding, dilation, transposed,
                                   output_padding, groups)};
  })[0];
}

Three convolution_backward(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                           c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                           bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups,
                           std::array<bool, 3> wanted) {
  const std::vector<c10::SymInt> bias_sizes{gradient.sym_size(1)};
  return first_three(
      compute("aten::convolution_backward", {gradient, input, weight}, [&](const Tensors& on_cpu) -> Tensors {
        auto [of_input, of_weight, of_bias] =
            at::convolution_backward_symint(on_cpu[0], on_cpu[1], on_cpu[2], c10::SymIntArrayRef(bias_sizes), stride,
                                            padding, dilation, transposed, output_padding, groups, wanted);
        return {of_input, of_weight, of_bias};
      }));
}

Three lstm_cell(const Tensor& from_input, const Tensor& from_state, const Tensor& cell,
                const std::optional<Tensor>& input_bias, const std::optional<Tensor>& state_bias) {
  return first_three(compute("aten::_thnn_fused_lstm_cell",
                             {from_input, from_state, cell, or_none(input_bias), or_none(state_bias)},
                             [](const Tensors& on_cpu) -> Tensors {
                               Tensor gates = on_cpu[0] + on_cpu[1];
                               if (on_cpu[3].defined()) gates += on_cpu[3];
                               if (on_cpu[4].defined()) gates += on_cpu[4];
                               const Tensors parts = gates.unsafe_chunk(4, 1);
                               const Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid();
                               const Tensor candidate = parts[2].tanh(), out = parts[3].sigmoid();
                               const Tensor next = forget * on_cpu[2] + in * candidate;
                               return {out * next.tanh(), next, at::cat({in, forget, candidate, out}, 1)};
                             }));
}

Three lstm_cell_backward(const std::optional<Tensor>& of_state, const std::optional<Tensor>& of_cell,
                         const Tensor& cell, const Tensor& next, const Tensor& gates, bool has_bias) {
  return first_three(
      compute("aten::_thnn_fused_lstm_cell_backward", {or_none(of_state), or_none(of_cell), cell, next, gates},
              [has_bias](const Tensors& on_cpu) -> Tensors {
                const Tensors parts = on_cpu[4].unsafe_chunk(4, 1);
                const Tensor in = parts[0], forget = parts[1], candidate = parts[2], out = parts[3];
                const Tensor shown = on_cpu[3].tanh();
                Tensor of_next = on_cpu[1].defined() ? on_cpu[1] : at::zeros_like(shown);
                Tensor of_out = at::zeros_like(shown);
                if (on_cpu[0].defined()) {
                  of_next = of_next + on_cpu[0] * out * (1 - shown * shown);
                  of_out = on_cpu[0] * shown * out * (1 - out);
                }
                const Tensor of_gates =
                    at::cat({of_next * candidate * in * (1 - in), of_next * on_cpu[2] * forget * (1 - forget),
                             of_next * in * (1 - candidate * candidate), of_out},
                            1);
                return {of_gates, of_next * forget, has_bias ? of_gates.sum(0) : Tensor()};
              }));
}

std::tuple<Tensor, Tensor> dropout(const Tensor& input, double probability, std::optional<bool> train) {
  const double kept = train.value_or(true) ? 1 - probability : 1;
  const Tensors made = compute("aten::native_dropout", {input}, [&](const Tensors& on_cpu) -> Tensors {
    const Tensor mask = at::empty_like(on_cpu[0], at::kBool).bernoulli_(kept, cpu_generator_of(default_generator()));
    return {(on_cpu[0] * mask).mul_(kept == 0 ? 0 : 1 / kept), mask};
  });
  return {made[0], made[1]};
}

// The CPU's own, where it takes the CPU's tensors.
int64_t attention_choice(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                         double dropout, bool is_causal, std::optional<double> scale, bool grouped) {
  const auto like = [](const Tensor& tensor) {
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU))
        .set_requires_grad(tensor.requires_grad() && at::GradMode::is_enabled());
  };
  if (mask) return static_cast<int64_t>(at::SDPBackend::math);
  const auto choice =
      at::_fused_sdp_choice(like(query), like(key), like(value), std::nullopt, dropout, is_causal, scale, grouped);
  return choice == static_cast<int64_t>(at::SDPBackend::math) ? choice
                                                              : static_cast<int64_t>(at::SDPBackend::overrideable);
}

using Attention = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Attention attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& bias,
                    double dropout, bool is_causal, bool, std::optional<double> scale) {
  TORCH_CHECK(!bias, "the strict device's fused attention takes no mask");
  const Tensors made =
      compute("aten::_scaled_dot_product_flash_attention", {query, key, value}, [&](const Tensors& on_cpu) -> Tensors {
        auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
            on_cpu[0], on_cpu[1], on_cpu[2], dropout, is_causal, std::nullopt, scale);
        return {output, logsumexp};
      });
  const Tensor none = at::empty({0}, query.options().dtype(at::kLong));
  return {made[0], made[1], none, none, query.sym_size(2), key.sym_size(2), none, none, none};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attention_backward(
    const Tensor& gradient, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&,
    std::array<bool, 4>, const Tensor& output, const Tensor& logsumexp, const Tensor&, const Tensor&, c10::SymInt,
    c10::SymInt, double dropout, bool is_causal, const Tensor&, const Tensor&, std::optional<double> scale) {
  const Tensors made = compute(
      "aten::_scaled_dot_product_flash_attention_backward", {gradient, query, key, value, output, logsumexp},
      [&](const Tensors& on_cpu) -> Tensors {
        auto [of_query, of_key, of_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            on_cpu[0], on_cpu[1], on_cpu[2], on_cpu[3], on_cpu[4], on_cpu[5], dropout, is_causal, std::nullopt, scale);
        return {of_query, of_key, of_value};
      });
  return {made[0], made[1], made[2], Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolution_backward);
  library.impl("_thnn_fused_lstm_cell", lstm_cell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  library.impl("native_dropout", dropout);
  library.impl("_fused_sdp_choice", attention_choice);
  library.impl("_scaled_dot_product_fused_attention_overrideable", attention);
  library.impl("_scaled_dot_product_fused_attention_overrideable_backward", attention_backward);
}

}  // namespace
}  // namespace spillway

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &::spillway::attention_choice)
}  // namespace at::native
