#pragma once

#include "hook/torch/tensor_memory.h"

namespace spillway {

// Memory as PyTorch itself takes it: no limit, no faults. For recording, and for forked children.
class PlainMemory final : public TensorMemory {
 public:
  Result<void*> allocate(std::size_t bytes) override;
  void free(void* memory) override;
  bool contains(const void*) const override { return false; }
  void kernel_ready(std::span<const ByteExtent>) override {}
  void kernel_done() override {}
  Nanos stalled(Nanos) const override { return {}; }
  std::uint64_t faults() const override { return 0; }
};

}  // namespace spillway
