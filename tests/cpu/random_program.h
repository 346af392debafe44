#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "pager_support.h"
#include "runtime/pager.h"

namespace spillway {

// A tensor with a copy of its bytes in memory that nobody limits.
struct ShadowedTensor {
  std::byte* memory = nullptr;
  std::vector<std::byte> shadow;
};

constexpr std::uint32_t kKernels = 16;  // of a plan's iteration

// Does at random what scripts do, and compares every byte with the copy.
class Program {
 public:
  struct Size {
    std::size_t most_bytes;  // of all its tensors
    std::size_t largest = 12 << 20;
    std::optional<BlockRange> apart = {};  // where a plan wants some of them
  };
  Program(Pager& pager, std::uint64_t seed, const Size& size) : pager_(pager), random_(seed), size_(size) {}

  void step() {
    switch (below(8)) {
      case 0:
      case 1:
        return allocate();
      case 2:
        return tensors_.empty() || live_ < size_.most_bytes / 2 ? allocate() : release(below(tensors_.size()));
      case 3:
        return kernel();
      case 4:
      case 5:
        return with_tensor([&](ShadowedTensor& tensor, std::size_t from, std::size_t bytes) {
          const auto value = static_cast<int>(random_() & 0xff);
          std::memset(tensor.memory + from, value, bytes);
          std::memset(tensor.shadow.data() + from, value, bytes);
        });
      default:
        return with_tensor([&](ShadowedTensor& tensor, std::size_t from, std::size_t bytes) {
          EXPECT_EQ(std::memcmp(tensor.memory + from, tensor.shadow.data() + from, bytes), 0);
        });
    }
  }
  void finish() {
    while (!tensors_.empty()) release(tensors_.size() - 1);
  }
  bool holds_its_bytes() const {
    return std::ranges::all_of(tensors_, [](const ShadowedTensor& tensor) {
      return std::memcmp(tensor.memory, tensor.shadow.data(), tensor.shadow.size()) == 0;
    });
  }
  // Some of the kernels from now on are this plan's.
  void follow(std::shared_ptr<const RunPlan> plan) { plan_ = std::move(plan); }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  void allocate() {
    std::size_t bytes = 1 + below(below(2) == 0 ? 5000 : size_.largest);
    while (!tensors_.empty() && live_ + bytes > size_.most_bytes) release(below(tensors_.size()));
    std::optional<std::uint64_t> place;
    if (size_.apart && below(2) == 0)
      place =
          kBlockBytes.value * size_.apart->first.value + below(kBlockBytes.value * size_.apart->count / 4096) * 4096;
    auto memory = pager_.allocate(bytes, place, {1 + below(20)});
    if (!memory) {  // Other threads have the rest.
      ASSERT_EQ(memory.error().code, Errc::out_of_memory) << memory.error().message;
      if (!tensors_.empty()) release(below(tensors_.size()));
      return;
    }
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory) % 64, 0u);
    ShadowedTensor tensor{static_cast<std::byte*>(*memory), std::vector<std::byte>(bytes)};
    for (std::size_t at = 0; at < bytes; at += 512) {
      const auto value = static_cast<std::byte>(random_());
      std::fill_n(tensor.shadow.data() + at, std::min<std::size_t>(512, bytes - at), value);
    }
    std::memcpy(tensor.memory, tensor.shadow.data(), bytes);
    live_ += bytes;
    tensors_.push_back(std::move(tensor));
  }
  void release(std::size_t index) {
    ShadowedTensor& tensor = tensors_[index];
    EXPECT_EQ(std::memcmp(tensor.memory, tensor.shadow.data(), tensor.shadow.size()), 0);
    pager_.free(tensor.memory);
    live_ -= tensor.shadow.size();
    std::swap(tensor, tensors_.back());
    tensors_.pop_back();
  }
  void kernel() {
    const StreamId stream = pager_.this_stream();
    std::vector<ByteExtent> extents;
    for (int count = 0; count < 3 && !tensors_.empty(); ++count) {
      const ShadowedTensor& tensor = tensors_[below(tensors_.size())];
      extents.push_back({tensor.memory, tensor.shadow.size(), below(2) == 0, below(5) == 0});
    }
    const KernelId kernel{static_cast<std::uint32_t>(below(kKernels))};
    const auto plan = plan_;
    const NextKernel unplanned{.plan = nullptr, .kernel = kNoKernel, .execution = {1 + below(5)}};
    pager_.kernel_ready(stream, plan && below(4) > 0 ? NextKernel{plan.get(), kernel} : unplanned, extents);
    for (const ByteExtent& extent : extents)
      for (const ShadowedTensor& tensor : tensors_)
        if (tensor.memory == extent.begin) {
          EXPECT_EQ(std::memcmp(tensor.memory, tensor.shadow.data(), tensor.shadow.size()), 0);
        }
    come_back_to(extents);
    pager_.kernel_done(stream);
  }
  // Here and there, as a kernel does that uses its tensors more than once: in pieces, where they do not fit.
  void come_back_to(const std::vector<ByteExtent>& extents) {
    for (const ByteExtent& extent : extents)
      for (ShadowedTensor& tensor : tensors_) {
        if (tensor.memory != extent.begin) continue;
        for (int place = 0; place < 4; ++place) {
          const std::size_t from = below(tensor.shadow.size());
          const std::size_t bytes = 1 + below(std::min<std::size_t>(tensor.shadow.size() - from, 100'000));
          EXPECT_EQ(std::memcmp(tensor.memory + from, tensor.shadow.data() + from, bytes), 0);
          if (!extent.writes) continue;
          const auto value = static_cast<int>(random_() & 0xff);
          std::memset(tensor.memory + from, value, bytes);
          std::memset(tensor.shadow.data() + from, value, bytes);
        }
      }
  }
  template <class F>
  void with_tensor(F&& use) {
    if (tensors_.empty()) return;
    ShadowedTensor& tensor = tensors_[below(tensors_.size())];
    const std::size_t from = below(tensor.shadow.size());
    use(tensor, from, 1 + below(tensor.shadow.size() - from));
  }

  Pager& pager_;
  std::mt19937_64 random_;
  Size size_;
  std::shared_ptr<const RunPlan> plan_;
  std::vector<ShadowedTensor> tensors_;
  std::size_t live_ = 0;
};

}  // namespace spillway
