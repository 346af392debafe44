// All operators that are not the device's own: the CPU's kernel runs on the thread of a stream, over the device's
// memory.

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "copies.h"
#include "cpu_views.h"
#include "generator.h"
#include "kernels.h"
#include "streams.h"

namespace spillway {
namespace {

using torch::jit::Stack;

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// A call of an operator, and what becomes of its arguments on the CPU.
class Call {
 public:
  Call(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments)
      : op_(op), schema_(op.schema()), arguments_(std::move(arguments)) {
    for (std::size_t at = 0; at < arguments_.size(); ++at)
      on_cpu_.push_back(on_cpu(arguments_[at], schema_.arguments()[at]));
  }

  std::vector<c10::IValue> run() {
    if (makes_tensors_only()) return results_of_kernel();
    DeviceWork work{.name = schema_.name(), .memory = views_.memory(), .run = {}};
    if (is_to_be_waited_for()) {
      Stack stack = on_cpu_;
      work.run = [&] {
        op_.callBoxed(&stack);
        for (std::size_t at = 0; at < stack.size(); ++at)
          if (!is_written(schema_.returns()[at])) stack[at] = owned_value(stack[at]);
      };
      launch_and_wait(std::move(work));
      take_over_sizes();
      return results(stack);
    }
    std::vector<at::Tensor> outputs;
    for (const Output& output : outputs_) outputs.push_back(output.on_cpu);
    work.run = [op = op_, stack = on_cpu_, outputs = std::move(outputs)]() mutable {
      std::vector<std::vector<int64_t>> sizes;
      for (const at::Tensor& output : outputs) sizes.push_back(output.sizes().vec());
      op.callBoxed(&stack);
      for (std::size_t at = 0; at < outputs.size(); ++at)
        TORCH_CHECK(outputs[at].sizes() == sizes[at], op.schema().name(), " resizes an output that has elements");
    };
    launch(std::move(work));
    return results({});
  }

 private:
  struct Output {
    at::Tensor on_cpu, on_device;
  };

  c10::IValue on_cpu(const c10::IValue& value, const c10::Argument& argument) {
    if (value.isTensor()) return tensor_on_cpu(value.toTensor(), argument);
    if (value.isTensorList()) {
      c10::List<at::Tensor> all;
      for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(tensor_on_cpu(tensor, argument));
      return all;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> all;
      for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList())
        all.push_back(tensor ? std::optional(tensor_on_cpu(*tensor, argument)) : std::nullopt);
      return all;
    }
    if (value.isDevice()) return at::Device(at::kCPU);
    if (value.isGenerator()) return cpu_generator_of(value.toGenerator());
    const auto* const optional = argument.type()->castRaw<c10::OptionalType>();
    const bool draws =
        value.isNone() && optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
    return draws ? c10::IValue(cpu_generator_of(default_generator())) : value;
  }

  at::Tensor tensor_on_cpu(const at::Tensor& tensor, const c10::Argument& argument) {
    at::Tensor view = views_.of(tensor);
    if (!is_on_device(tensor)) return view;
    has_device_tensors_ = true;
    if (is_written(argument)) outputs_.push_back({.on_cpu = view, .on_device = tensor});
    return view;
  }

  bool is_to_be_waited_for() const {
    if (views_.has_host_tensors() || !has_device_tensors_) return true;
    for (const c10::Argument& result : schema_.returns())
      if (!is_written(result)) return true;
    for (const Output& output : outputs_)
      if (output.on_device.numel() == 0) return true;
    return false;
  }

  bool makes_tensors_only() const {
    const auto is_new_tensor = [](const c10::Argument& result) {
      return result.alias_info() == nullptr && result.type()->kind() == c10::TypeKind::TensorType;
    };
    return has_device_tensors_ && outputs_.empty() && !schema_.returns().empty() &&
           std::ranges::all_of(schema_.returns(), is_new_tensor);
  }

  std::vector<c10::IValue> results_of_kernel() {
    Kernel kernel{.name = schema_.name(), .key = key(), .views = std::move(views_), .run = {}};
    kernel.run = [op = op_, arguments = on_cpu_] {
      Stack stack = arguments;
      op.callBoxed(&stack);
      std::vector<at::Tensor> made;
      for (const c10::IValue& value : stack) made.push_back(value.toTensor());
      return made;
    };
    std::vector<c10::IValue> all;
    for (at::Tensor& result : launch(std::move(kernel))) all.emplace_back(std::move(result));
    return all;
  }

  std::string key() const {
    if (op_.hasTag(at::Tag::dynamic_output_shape) || op_.hasTag(at::Tag::data_dependent_output)) return "";
    // It may draw from the CPU's own generator: the script must not do so meanwhile.
    if (op_.hasTag(at::Tag::nondeterministic_seeded)) return "";
    std::ostringstream text;
    text << '.' << schema_.overload_name();
    for (const c10::IValue& value : on_cpu_) write_key(text, value);
    return text.str();
  }

  static void write_key(std::ostream& text, const c10::IValue& value) {
    if (value.isTensor()) {
      text << shape_of(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) text << shape_of(tensor);
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList())
        text << shape_of(tensor.value_or(at::Tensor()));
    } else if (!value.isGenerator()) {
      text << ' ' << value;
    }
  }

  // Outputs that had no elements may have some now.
  void take_over_sizes() {
    for (const Output& output : outputs_) {
      if (output.on_cpu.sizes() == output.on_device.sizes()) continue;
      TORCH_CHECK(output.on_device.numel() == 0, schema_.name(), " resizes an output that has elements");
      resize(output.on_device, output.on_cpu.sizes());
      copy(to_device(output.on_cpu), output.on_device);
    }
  }

  // Within the work.
  c10::IValue owned_value(const c10::IValue& value) const {
    if (value.isTensor()) return owned(value.toTensor(), views_.memory());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> all;
    for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(owned(tensor, views_.memory()));
    return all;
  }

  // What the operator returns, given what the CPU's has: an argument that it has written to, or what it has made.
  std::vector<c10::IValue> results(const Stack& from_cpu) const {
    std::vector<c10::IValue> all;
    for (std::size_t at = 0; at < schema_.returns().size(); ++at) {
      const c10::Argument& result = schema_.returns()[at];
      TORCH_CHECK(result.alias_info() == nullptr || is_written(result), schema_.name(), " returns a view");
      if (is_written(result)) {
        all.push_back(argument_that_is(result));
      } else if (from_cpu[at].isTensor()) {
        all.emplace_back(to_device(from_cpu[at].toTensor()));
      } else if (from_cpu[at].isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : from_cpu[at].toTensorVector()) list.push_back(to_device(tensor));
        all.emplace_back(std::move(list));
      } else {
        all.push_back(from_cpu[at]);
      }
    }
    return all;
  }

  const c10::IValue& argument_that_is(const c10::Argument& result) const {
    for (std::size_t at = 0; at < arguments_.size(); ++at) {
      const auto* const alias = schema_.arguments()[at].alias_info();
      if (alias != nullptr && *alias == *result.alias_info()) return arguments_[at];
    }
    TORCH_CHECK(false, schema_.name(), " returns what it was not given");
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  const std::vector<c10::IValue> arguments_;
  Stack on_cpu_;
  CpuViews views_;
  std::vector<Output> outputs_;
  bool has_device_tensors_ = false;
};

void run_on_cpu(const c10::OperatorHandle& op, Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  Call call(op, arguments.vec());
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : call.run()) stack->push_back(std::move(result));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

// Those that the CPU has a kernel for, while other devices get several operators, or the form with an output, which is
// wrong for these losses.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (const char* const name :
       {"native_layer_norm", "native_group_norm", "mish_backward", "silu_backward", "mse_loss", "smooth_l1_loss"})
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

}  // namespace
}  // namespace spillway
