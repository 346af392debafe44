#include "cpu_views.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

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

}  // namespace spillway
