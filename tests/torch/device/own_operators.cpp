// Operators that no device has unless it brings them.

#include <ATen/ATen.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "generator.h"
#include "kernels.h"

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

// `options` decide, beside the inputs' shapes, which shapes the results have. The computation owns what it needs.
using Computation = std::function<Tensors(const Tensors& inputs)>;
Tensors compute(const char* name, const std::string& options, const Tensors& inputs, Computation computation) {
  Kernel kernel{.name = name, .key = " " + options, .views = {}, .run = {}};
  Tensors on_cpu;
  for (const Tensor& input : inputs) {
    kernel.key += shape_of(input);
    on_cpu.push_back(kernel.views.of(input));
  }
  kernel.run = [on_cpu = std::move(on_cpu), computation = std::move(computation)] { return computation(on_cpu); };
  return launch(std::move(kernel));
}

// What convolutions are given beside tensors.
struct Window {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
  std::string text() const { return c10::str(stride, padding, dilation, output_padding, transposed, " ", groups); }
};

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, at::IntArrayRef stride,
                   at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                   int64_t groups) {
  const Window window{stride.vec(), padding.vec(), dilation.vec(), output_padding.vec(), transposed, groups};
  return compute("aten::convolution", window.text(), {input, weight, or_none(bias)},
                 [window](const Tensors& on_cpu) -> Tensors {
                   return {at::convolution(on_cpu[0], on_cpu[1], if_defined(on_cpu[2]), window.stride, window.padding,
                                           window.dilation, window.transposed, window.output_padding, window.groups)};
                 })[0];
}

Three convolution_backward(const Tensor& gradient, const Tensor& input, const Tensor& weight, at::IntArrayRef stride,
                           at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                           at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  const Window window{stride.vec(), padding.vec(), dilation.vec(), output_padding.vec(), transposed, groups};
  const std::string options = c10::str(window.text(), wanted[0], wanted[1], wanted[2]);
  return first_three(compute("aten::convolution_backward", options, {gradient, input, weight},
                             [window, wanted](const Tensors& on_cpu) -> Tensors {
                               const std::vector<int64_t> bias_sizes{on_cpu[0].size(1)};
                               auto [of_input, of_weight, of_bias] = at::convolution_backward(
                                   on_cpu[0], on_cpu[1], on_cpu[2], bias_sizes, window.stride, window.padding,
                                   window.dilation, window.transposed, window.output_padding, window.groups, wanted);
                               return {of_input, of_weight, of_bias};
                             }));
}

Tensors lstm_gates(const Tensors& on_cpu) {
  Tensor gates = on_cpu[0] + on_cpu[1];
  if (on_cpu[3].defined()) gates += on_cpu[3];
  if (on_cpu[4].defined()) gates += on_cpu[4];
  const Tensors parts = gates.unsafe_chunk(4, 1);
  const Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid(), candidate = parts[2].tanh();
  const Tensor out = parts[3].sigmoid(), next = (forget * on_cpu[2]).add_(in * candidate);
  return {out * next.tanh(), next, at::cat({in, forget, candidate, out}, 1)};
}

Three lstm_cell(const Tensor& from_input, const Tensor& from_state, const Tensor& cell,
                const std::optional<Tensor>& input_bias, const std::optional<Tensor>& state_bias) {
  return first_three(compute("aten::_thnn_fused_lstm_cell", "",
                             {from_input, from_state, cell, or_none(input_bias), or_none(state_bias)}, lstm_gates));
}

Tensors lstm_gradients(const Tensors& on_cpu, bool has_bias) {
  const Tensors parts = on_cpu[4].unsafe_chunk(4, 1);
  const Tensor &in = parts[0], &forget = parts[1], &candidate = parts[2], &out = parts[3];
  const Tensor shown = on_cpu[3].tanh();
  Tensor of_next = on_cpu[1].defined() ? on_cpu[1] : at::zeros_like(shown), of_out = at::zeros_like(shown);
  if (on_cpu[0].defined()) {
    of_next = of_next + on_cpu[0] * out * (1 - shown * shown);
    of_out = on_cpu[0] * shown * out * (1 - out);
  }
  const Tensor of_gates = at::cat({of_next * candidate * in * (1 - in), of_next * on_cpu[2] * forget * (1 - forget),
                                   of_next * in * (1 - candidate * candidate), of_out},
                                  1);
  return {of_gates, of_next * forget, has_bias ? of_gates.sum(0) : Tensor()};
}

Three lstm_cell_backward(const std::optional<Tensor>& of_state, const std::optional<Tensor>& of_cell,
                         const Tensor& cell, const Tensor& next, const Tensor& gates, bool has_bias) {
  return first_three(compute("aten::_thnn_fused_lstm_cell_backward", has_bias ? "bias" : "",
                             {or_none(of_state), or_none(of_cell), cell, next, gates},
                             [has_bias](const Tensors& on_cpu) { return lstm_gradients(on_cpu, has_bias); }));
}

// The gates in order: reset, update, new.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& from_input, const Tensor& from_state, const Tensor& state,
                                    const std::optional<Tensor>& input_bias, const std::optional<Tensor>& state_bias) {
  const Tensors made = compute(
      "aten::_thnn_fused_gru_cell", "", {from_input, from_state, state, or_none(input_bias), or_none(state_bias)},
      [](const Tensors& on_cpu) -> Tensors {
        const Tensors of_input = (on_cpu[3].defined() ? on_cpu[0] + on_cpu[3] : on_cpu[0]).unsafe_chunk(3, 1);
        const Tensors of_state = (on_cpu[4].defined() ? on_cpu[1] + on_cpu[4] : on_cpu[1]).unsafe_chunk(3, 1);
        const Tensor reset = (of_input[0] + of_state[0]).sigmoid(), update = (of_input[1] + of_state[1]).sigmoid();
        const Tensor fresh = (of_input[2] + reset * of_state[2]).tanh();
        return {fresh + update * (on_cpu[2] - fresh), at::cat({reset, update, fresh, on_cpu[2], of_state[2]}, 1)};
      });
  return {made[0], made[1]};
}

using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Five gru_cell_backward(const Tensor& of_next, const Tensor& workspace, bool has_bias) {
  const Tensors made =
      compute("aten::_thnn_fused_gru_cell_backward", has_bias ? "bias" : "", {of_next, workspace},
              [has_bias](const Tensors& on_cpu) -> Tensors {
                const Tensors parts = on_cpu[1].unsafe_chunk(5, 1);
                const Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &state = parts[3],
                             &from_state = parts[4];
                const Tensor of_fresh = on_cpu[0] * (1 - update) * (1 - fresh * fresh);
                const Tensor of_update = on_cpu[0] * (state - fresh) * update * (1 - update);
                const Tensor of_reset = of_fresh * from_state * reset * (1 - reset);
                const Tensor of_inputs = at::cat({of_reset, of_update, of_fresh}, 1);
                const Tensor of_states = at::cat({of_reset, of_update, of_fresh * reset}, 1);
                return {of_inputs, of_states, on_cpu[0] * update, has_bias ? of_inputs.sum(0) : Tensor(),
                        has_bias ? of_states.sum(0) : Tensor()};
              });
  return {made[0], made[1], made[2], made[3], made[4]};
}

std::tuple<Tensor, Tensor> dropout(const Tensor& input, double probability, std::optional<bool> train) {
  const double kept = train.value_or(true) ? 1 - probability : 1;
  const Tensors made = compute("aten::native_dropout", "", {input}, [kept](const Tensors& on_cpu) -> Tensors {
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
  const auto math = static_cast<int64_t>(at::SDPBackend::math);
  if (mask) return math;
  const auto choice =
      at::_fused_sdp_choice(like(query), like(key), like(value), std::nullopt, dropout, is_causal, scale, grouped);
  return choice == math ? math : static_cast<int64_t>(at::SDPBackend::overrideable);
}

using Attention = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Attention attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& bias,
                    double dropout, bool is_causal, bool, std::optional<double> scale) {
  TORCH_CHECK(!bias, "the strict device's fused attention takes no mask");
  const Tensors made = compute("aten::_scaled_dot_product_flash_attention", "", {query, key, value},
                               [=](const Tensors& on_cpu) -> Tensors {
                                 auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
                                     on_cpu[0], on_cpu[1], on_cpu[2], dropout, is_causal, std::nullopt, scale);
                                 return {output, logsumexp};
                               });
  const Tensor none = at::empty({0}, query.options().dtype(at::kLong));
  return {made[0], made[1], none, none, query.sym_size(2), key.sym_size(2), none, none, none};
}

// NOLINTBEGIN(performance-unnecessary-value-param): PyTorch calls it so.
std::tuple<Tensor, Tensor, Tensor, Tensor> attention_backward(
    const Tensor& gradient, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&,
    std::array<bool, 4>, const Tensor& output, const Tensor& logsumexp, const Tensor&, const Tensor&, c10::SymInt,
    c10::SymInt, double dropout, bool is_causal, const Tensor&, const Tensor&, std::optional<double> scale) {
  const Tensors made = compute(
      "aten::_scaled_dot_product_flash_attention_backward", "", {gradient, query, key, value, output, logsumexp},
      [=](const Tensors& on_cpu) -> Tensors {
        auto [of_query, of_key, of_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            on_cpu[0], on_cpu[1], on_cpu[2], on_cpu[3], on_cpu[4], on_cpu[5], dropout, is_causal, std::nullopt, scale);
        return {of_query, of_key, of_value};
      });
  return {made[0], made[1], made[2], Tensor()};
}
// NOLINTEND(performance-unnecessary-value-param)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolution_backward);
  library.impl("_thnn_fused_lstm_cell", lstm_cell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  library.impl("_thnn_fused_gru_cell", gru_cell);
  library.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
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
