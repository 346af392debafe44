#include "hook/pager/tensor_heap.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {
namespace {

constexpr Bytes kLarge = 1_MiB;
constexpr Bytes kSmallGranule{64};  // what PyTorch wants its memory aligned to
constexpr Bytes kLargeGranule{4096};

}  // namespace

TensorHeap::TensorHeap(std::uint32_t blocks)
    : small_bytes_(kBlockBytes.value * std::max(blocks / 4, 1u)),
      small_(Bytes{small_bytes_}, kSmallGranule),
      large_(Bytes{kBlockBytes.value * blocks - small_bytes_}, kLargeGranule),
      tensors_(blocks) {
  CHECK(blocks >= 2);
}

AddressSpace& TensorHeap::space_of(Bytes bytes) { return bytes < kLarge ? small_ : large_; }
std::uint64_t TensorHeap::base_of(Bytes bytes) const { return bytes < kLarge ? 0 : small_bytes_; }

std::optional<TensorHeap::Place> TensorHeap::propose(Bytes bytes) {
  CHECK(bytes > Bytes{});
  const auto within = space_of(bytes).take(bytes);
  if (!within) return std::nullopt;
  const std::uint64_t offset = base_of(bytes) + *within;
  const auto first = static_cast<std::uint32_t>(offset / kBlockBytes.value);
  const auto last = static_cast<std::uint32_t>((offset + bytes.value - 1) / kBlockBytes.value);
  return Place{offset, bytes, {}, {{first}, last - first + 1}};
}

TensorHeap::Place TensorHeap::commit(const Place& place) {
  Place kept = place;
  if (free_ids_.empty()) {
    kept.tensor = {next_id_++};
  } else {
    kept.tensor = free_ids_.back();
    free_ids_.pop_back();
  }
  for (BlockId block = place.blocks.first; block < place.blocks.end(); ++block.value)
    in_use_ += tensors_[block.value]++ == 0;
  CHECK(places_.emplace(place.offset, kept).second);
  return kept;
}

void TensorHeap::cancel(const Place& place) {
  space_of(place.bytes).give_back(place.offset - base_of(place.bytes), place.bytes);
}

std::optional<TensorHeap::Place> TensorHeap::remove(std::uint64_t offset) {
  const auto found = places_.find(offset);
  if (found == places_.end()) return std::nullopt;
  const Place place = found->second;
  places_.erase(found);
  for (BlockId block = place.blocks.first; block < place.blocks.end(); ++block.value)
    in_use_ -= --tensors_[block.value] == 0;
  free_ids_.push_back(place.tensor);
  cancel(place);
  return place;
}

std::uint32_t TensorHeap::new_blocks(const Place& place) const {
  std::uint32_t count = 0;
  for (BlockId block = place.blocks.first; block < place.blocks.end(); ++block.value)
    count += tensors_[block.value] == 0;
  return count;
}

}  // namespace spillway
