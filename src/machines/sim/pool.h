#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/lifetimes.h"
#include "machines/sim/caching_allocator.h"
#include "machines/sim/layout.h"
#include "trace/trace.h"

namespace spillway {

// The tensors of a trace in PyTorch's pool (DeepUM section 5.2): each lies where the allocator puts it when it is born,
// beside others in the same blocks of 2 MiB, and elsewhere the next time. A plain value.
class Pool {
 public:
  explicit Pool(const Trace& trace) : trace_(&trace), addresses_(trace.tensors.size()) {}

  // These write where the tensors lie from now on to the layout.
  void allocate(TensorId tensor, Layout& layout);
  // Between two iterations: each tensor's bytes are its heir's, if it has one.
  void carry(std::span<const std::optional<std::uint32_t>> heirs, Layout& layout);
  void free(TensorId tensor);
  Bytes reserved() const { return allocator_.reserved(); }

 private:
  void place(TensorId tensor, Layout& layout) const;

  const Trace* trace_;
  CachingAllocator allocator_;
  std::vector<std::uint64_t> addresses_;  // by TensorId
};

// Tensors that are alive when an iteration starts, in the order of their first use.
std::vector<TensorId> present_at_start(const Lifetimes& lifetimes);
// By TensorId, what it is in the next iteration; nothing for those that stay what they are.
std::vector<std::optional<std::uint32_t>> heirs_of(const Trace& trace);
// All blocks that the pool takes in so many iterations, and where each tensor lies first.
Layout pooled_layout(const Trace& trace, const Lifetimes& lifetimes, std::uint32_t iterations);

}  // namespace spillway
