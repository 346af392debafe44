#pragma once

#include <cstdint>
#include <vector>

#include "hook/torch/operators.h"
#include "hook/torch/pytorch.h"
#include "hook/torch/storages.h"
#include "hook/torch/tensor_memory.h"

namespace spillway {

// What a call is about to use of memory that was there before it.
struct Accesses {
  std::vector<MemoryExtent> extents;  // in our memory
  std::vector<Touch> touches;         // the same, by storage
  struct Foreign {
    const void* begin;
    std::size_t bytes;
  };
  std::vector<Foreign> foreign;  // storages that did not come from our allocator
  std::uint64_t shapes = 0;      // a hash of all tensors' shapes and types
  bool needs_gradient = false;   // an argument requires grad
};

Accesses accesses_of(const Operator& op, c10::ArrayRef<const c10::IValue> inputs, const Storages& storages);

}  // namespace spillway
