#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "launches.h"

namespace spillway {

inline bool is_on_device(const at::Tensor& tensor) { return tensor.defined() && tensor.device().is_privateuseone(); }

// Memory of the device that a tensor's elements lie in; of one without elements none.
StrictKernel::Memory memory_of(const at::Tensor& tensor);

// CPU tensors over the memory of tensors of the device, which only the device's work may touch. They do not own it.
class CpuViews {
 public:
  // The same one for the same tensor. A tensor without elements becomes a new one, which can be resized. Tensors that
  // are not on the device stay what they are.
  at::Tensor of(const at::Tensor& tensor);
  // Of all of those; each address once.
  const std::vector<StrictKernel::Memory>& memory() const { return memory_; }
  // Somebody may change one of them, or look at it, while the work has yet to run.
  bool has_host_tensors() const { return has_host_tensors_; }

 private:
  std::unordered_map<c10::TensorImpl*, at::Tensor> views_;
  std::vector<StrictKernel::Memory> memory_;
  bool has_host_tensors_ = false;
};

}  // namespace spillway
