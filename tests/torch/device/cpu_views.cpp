#include "cpu_views.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <memory>

#include "device_memory.h"

namespace spillway {

StrictKernel::Memory memory_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  const auto bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
  return {.address = reinterpret_cast<CUdeviceptr>(tensor.const_data_ptr()), .bytes = bytes};
}

at::Tensor CpuViews::of(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (!is_on_device(tensor)) {
    has_host_tensors_ = has_host_tensors_ || !tensor.unsafeGetTensorImpl()->is_wrapped_number();
    return tensor;
  }
  at::Tensor& view = views_[tensor.unsafeGetTensorImpl()];
  if (view.defined()) return view;
  TORCH_CHECK(tensor.layout() == at::kStrided && !tensor.is_quantized(), "the strict device has dense tensors only");
  if (tensor.numel() == 0) {
    view = at::Tensor(at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type()));
  } else {
    const auto memory = memory_of(tensor);
    view = at::for_blob(reinterpret_cast<void*>(memory.address), tensor.sizes())
               .strides(tensor.strides())
               .options(at::TensorOptions(tensor.dtype()).device(at::kCPU))
               .target_device(at::kCPU)
               .make_tensor();
    const auto same = std::ranges::find(memory_, memory.address, &StrictKernel::Memory::address);
    if (same == memory_.end()) {
      memory_.push_back(memory);
    } else {
      same->bytes = std::max(same->bytes, memory.bytes);
    }
  }
  if (tensor.is_conj()) view._set_conj(true);
  if (tensor.is_neg()) view._set_neg(true);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) view.unsafeGetTensorImpl()->set_wrapped_number(true);
  return view;
}

at::Tensor owned(const at::Tensor& result, const std::vector<StrictKernel::Memory>& memory) {
  if (!result.defined()) return result;
  const auto at = reinterpret_cast<CUdeviceptr>(result.const_data_ptr());
  const bool lies_there =
      std::ranges::any_of(memory, [&](const auto& one) { return one.address <= at && at < one.address + one.bytes; });
  return lies_there || result.is_conj() || result.is_neg() ? result.clone().resolve_conj().resolve_neg() : result;
}

at::Tensor to_device(const at::Tensor& result) {
  if (!result.defined()) return result;
  TORCH_CHECK(result.device().is_cpu() && result.layout() == at::kStrided,
              "a kernel of the strict device has returned ", result.toString());
  at::Tensor made(at::detail::empty_strided_generic(result.sizes(), result.strides(), &device_allocator(),
                                                    c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                    result.scalar_type()));
  if (result.numel() == 0) return made;
  CpuViews views;
  at::Tensor view = views.of(made);
  launch({.name = "a kernel's result", .memory = views.memory(), .run = [view, result] { view.copy_(result); }});
  return made;
}

std::vector<at::Tensor> compute(const char* name, at::ArrayRef<at::Tensor> inputs, const Computation& computation) {
  CpuViews views;
  std::vector<at::Tensor> on_cpu, results;
  for (const at::Tensor& input : inputs) on_cpu.push_back(views.of(input));
  launch_and_wait({.name = name, .memory = views.memory(), .run = [&] {
                     results = computation(on_cpu);
                     for (at::Tensor& result : results) result = owned(result, views.memory());
                   }});
  for (at::Tensor& result : results) result = to_device(result);
  return results;
}

}  // namespace spillway
