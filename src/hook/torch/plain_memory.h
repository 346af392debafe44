#pragma once

#include "hook/torch/tensor_memory.h"

namespace spillway {

// Memory as PyTorch itself takes it: no limit, no faults. For recording, and for forked children.
class PlainMemory final : public TensorMemory {
 public:
  Result<void*> allocate(const Newborn& tensor) override;
  void free(void* memory) override;
  bool contains(const void*) const override { return false; }
  std::span<std::byte> range() const override { return {}; }
  void kernel_ready(const NextKernel&, std::span<const ByteExtent>) override {}
  std::optional<std::uint32_t> kernel_done() override { return std::nullopt; }
  Nanos stalled(Nanos) const override { return {}; }
  MemoryFigures figures() const override { return {}; }
};

}  // namespace spillway
