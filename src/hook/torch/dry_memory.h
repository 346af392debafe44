#pragma once

#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "hook/torch/tensor_memory.h"
#include "memory/address_space.h"

namespace spillway {

// Addresses without memory, for tensors of PyTorch's device `meta`: nobody reads or writes them, and each tells its
// tensor from all others. Whoever touches one all the same gets a segmentation fault.
class DryMemory final : public TensorMemory {
 public:
  static Result<std::unique_ptr<DryMemory>> reserve();

  Result<void*> allocate(const Newborn& tensor) override;
  void free(void* memory) override;
  bool contains(const void* memory) const override;
  std::span<std::byte> range() const override { return {}; }  // No page of it is ever there.
  void kernel_ready(const NextKernel&, std::span<const ByteExtent>) override {}
  std::optional<std::uint32_t> kernel_done() override { return std::nullopt; }
  Nanos stalled(Nanos) const override { return {}; }
  MemoryFigures figures() const override { return {}; }

 private:
  DryMemory(std::byte* begin, Bytes size) : begin_(begin), size_(size), space_(size, kGranule) {}

  static constexpr Bytes kGranule{512};

  std::byte* begin_;
  Bytes size_;
  Mutex mutex_;  // a leaf
  AddressSpace space_ SPILLWAY_GUARDED_BY(mutex_);
  std::unordered_map<void*, Bytes> alive_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
