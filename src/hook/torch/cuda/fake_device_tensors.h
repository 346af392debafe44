#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "hook/torch/cuda/pytorch_cuda.h"
#include "hook/torch/device_tensors.h"

namespace spillway {

// Addresses that nobody may touch, one after the other; for tests. One thread.
class FakeDeviceTensors final : public DeviceTensors {
 public:
  static constexpr std::size_t kBudget = std::size_t{64} << 20;

  int device_index() const noexcept override { return 0; }
  std::size_t budget_bytes() const noexcept override { return kBudget; }
  void* allocate(std::size_t bytes, CUstream_st* stream) override {
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= range_.size() - used_, "all tiers are full");
    void* memory = range_.data() + used_;
    used_ += (bytes + 511) / 512 * 512;
    made.emplace_back(memory, stream);
    return memory;
  }
  void free(void* memory) noexcept override { freed.push_back(memory); }
  void record_stream(void* memory, CUstream_st* stream) override { recorded.emplace_back(memory, stream); }
  bool contains(const void* address) const noexcept override {
    return address >= range_.data() && address < range_.data() + range_.size();
  }

  std::vector<std::pair<void*, CUstream_st*>> made, recorded;
  std::vector<void*> freed;

 private:
  static constexpr std::size_t kRange = std::size_t{32} << 20;
  alignas(512) static inline std::array<std::byte, kRange> range_;
  std::size_t used_ = 0;
};

}  // namespace spillway
