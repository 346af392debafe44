#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace spillway {

// How PyTorch hands lists of tensors to kernels of its _foreach_ and _fused_ operators: by value, as the first
// parameter of multi_tensor_apply_kernel (aten/src/ATen/native/cuda/MultiTensorApply.cuh; structures
// TensorListMetadata, TensorListScalarListMetadata, FusedOptimizerTensorListMetadata). One structure serves all
// launches of an operator, so addresses of earlier launches are left in it. Those that count are named by the blocks of
// this launch.
struct TensorLists {
  std::size_t lists = 0;        // tensors of the same place in each list belong together
  std::size_t tensors = 0;      // room in each list
  std::size_t steps_at = 0;     // where addresses of state_steps begin; 0: has none
  std::size_t blocks_at = 0;    // where each block's tensor begins
  std::size_t blocks = 0;       // room for blocks
  std::size_t block_bytes = 0;  // of one entry
  std::size_t bytes = 0;        // of the whole
};

// By the kernel's mangled name and its first parameter's size. Nothing where it is no such kernel, or has another
// layout than those that PyTorch 2.7 to 2.13 have when compiled for CUDA 12 (4 KiB of parameters) and CUDA 13 (32 KiB).
std::optional<TensorLists> tensor_lists_of(std::string_view kernel, std::size_t parameter_bytes);

// Calls f(address) for all tensors that the first `grid` blocks work on. False, before any call, where what stands
// there is not such a structure.
template <class F>
bool for_each_tensor(const TensorLists& layout, const std::byte* parameter, std::size_t grid, F f) {
  const auto tensor_of = [&](std::size_t block) -> std::size_t {
    if (layout.block_bytes == 1) return std::to_integer<std::size_t>(parameter[layout.blocks_at + block]);
    std::uint16_t tensor;
    std::memcpy(&tensor, parameter + layout.blocks_at + block * sizeof tensor, sizeof tensor);
    return tensor;
  };
  const auto address_at = [&](std::size_t offset) {
    std::uint64_t address;
    std::memcpy(&address, parameter + offset, sizeof address);
    return address;
  };
  if (grid > layout.blocks) return false;
  for (std::size_t block = 0; block < grid; ++block)
    if (tensor_of(block) >= layout.tensors) return false;
  for (std::size_t block = 0; block < grid; ++block) {
    const std::size_t tensor = tensor_of(block);
    if (block > 0 && tensor == tensor_of(block - 1)) continue;  // a tensor's blocks follow each other
    for (std::size_t list = 0; list < layout.lists; ++list)
      f(address_at((list * layout.tensors + tensor) * sizeof(std::uint64_t)));
    if (layout.steps_at != 0) f(address_at(layout.steps_at + tensor * sizeof(std::uint64_t)));
  }
  return true;
}

}  // namespace spillway
