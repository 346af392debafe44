#include "machines/cuda/pinned_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace spillway {
namespace {

// Pinning disturbs running kernels, so it comes seldom; and it takes long, so it does not come all at once.
constexpr Bytes kStep = 64_MiB;

}  // namespace

PinnedMemory::~PinnedMemory() {
  for (void* const step : steps_) driver_.cuMemFreeHost(step);
}

Result<> PinnedMemory::begin() {
  if (slots_ == 0) grow();
  return shortage_.empty() ? Result<>{} : fail(Errc::out_of_memory, shortage_);
}

std::byte* PinnedMemory::take() {
  if (free_.empty()) grow();
  if (free_.empty()) return nullptr;
  std::byte* const slot = free_.back();
  free_.pop_back();
  return slot;
}

void PinnedMemory::grow() {
  const auto in_step = static_cast<std::uint32_t>(std::max<std::uint64_t>(kStep.value / slot_bytes_.value, 1));
  const std::uint32_t count = std::min(in_step, most_slots_ - slots_);
  if (count == 0 || !shortage_.empty()) return;
  void* step = nullptr;
  const CUresult result = driver_.cuMemAllocHost(&step, slot_bytes_.value * count);
  if (result != CUDA_SUCCESS) {
    shortage_ = fmt::format("the system pins no more host memory than {} of a budget of {} ({})", to_text(pinned()),
                            to_text(slot_bytes_ * most_slots_), driver_.text_of(result));
    return;
  }
  steps_.push_back(step);
  slots_ += count;
  for (std::uint32_t slot = count; slot-- > 0;)
    free_.push_back(static_cast<std::byte*>(step) + slot * slot_bytes_.value);
}

}  // namespace spillway
