#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "cpu_views.h"

namespace spillway {

// Makes new tensors of the device.
struct Kernel {
  std::string name;
  // What decides, with the name, which sizes its results have. Empty: only their values say so.
  std::string key;
  CpuViews views;
  // Of CPU tensors over the device's memory alone. They and what it returns lie on the CPU; it may return one of them.
  std::function<std::vector<at::Tensor>()> run;
};

// Returns at once where it has run with this key before, as a GPU's kernels do: then it is known what to allocate.
std::vector<at::Tensor> launch(Kernel kernel);

// Within work: a result that has memory of its own, though it may be a view of what the work was given.
at::Tensor owned(const at::Tensor& result, const std::vector<StrictKernel::Memory>& memory);
// A result of work that is done becomes a tensor of the device.
at::Tensor to_device(const at::Tensor& result);

// For keys.
std::string shape_of(const at::Tensor& tensor);

}  // namespace spillway
