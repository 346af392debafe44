#include "hook/pager/tensor_heap.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {
namespace {

constexpr Bytes kLarge = 1_MiB;
constexpr Bytes kSmallGranule{64};  // what PyTorch wants its memory aligned to
constexpr Bytes kLargeGranule{4096};

std::uint64_t bytes_for_small(std::uint32_t blocks) { return kBlockBytes.value * std::max(blocks / 4, 1u); }

}  // namespace

TensorHeap::TensorHeap(std::uint32_t blocks)
    : small_{0, {Bytes{bytes_for_small(blocks)}, kSmallGranule}},
      large_{bytes_for_small(blocks), {kBlockBytes * blocks - Bytes{bytes_for_small(blocks)}, kLargeGranule}},
      tensors_(blocks) {
  CHECK(blocks >= 2);
}

std::optional<TensorHeap::Place> TensorHeap::propose(Bytes bytes) {
  CHECK(bytes > Bytes{});
  const bool is_small = bytes < kLarge;
  for (Part* part : {is_small ? &small_ : &large_, is_small ? &large_ : &small_}) {
    const auto within = part->space.take(bytes);
    if (!within) continue;
    const std::uint64_t offset = part->begin + *within;
    const auto first = static_cast<std::uint32_t>(offset / kBlockBytes.value);
    const auto last = static_cast<std::uint32_t>((offset + bytes.value - 1) / kBlockBytes.value);
    return Place{offset, bytes, {}, {{first}, last - first + 1}};
  }
  return std::nullopt;
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
  Part& part = place.offset < large_.begin ? small_ : large_;
  part.space.give_back(place.offset - part.begin, place.bytes);
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
