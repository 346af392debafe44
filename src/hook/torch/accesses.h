#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "hook/torch/operators.h"
#include "hook/torch/pytorch.h"
#include "hook/torch/storages.h"
#include "hook/torch/tensor_memory.h"

namespace spillway {

// What a call is about to use of memory that was there before it.
struct Accesses {
  void begin_anew(std::string_view kernel);  // nothing is used; the lists keep their memory

  std::vector<ByteExtent> extents;         // in our memory
  std::vector<Touch> touches;              // the same, by storage
  std::vector<c10::StorageImpl*> foreign;  // did not come from our allocator; valid during the call
  std::uint64_t shapes = 0;                // a hash of all tensors' shapes and types, and of whether gradients are on
  std::vector<std::int64_t> sizes;         // of the same tensors: how many dimensions, then each (KnownShapes)
  std::uint64_t resized = 0;               // tensors larger than their memory: only `meta` has such
  KernelLineage lineage{""};
  bool needs_gradient = false;    // an argument requires grad
  bool of_wrappers = false;       // some argument stands for other tensors: the operators called with these do the work
  bool sees_all = true;           // no argument lies elsewhere, where it may change without our being told
  bool writes_parameter = false;  // one that has a gradient is written: the step of an optimizer by hand
};

// Whether the data of any tensor of the device among them lies in memory that the predicate names. Takes no lock.
bool any_tensor_lies_in(const std::function<bool(const void*)>& memory, c10::Device device,
                        c10::ArrayRef<const c10::IValue> inputs);

// Of tensors on that device.
void find_accesses(const Operator& op, c10::Device device, c10::ArrayRef<const c10::IValue> inputs, Storages& storages,
                   Accesses& result);

}  // namespace spillway
