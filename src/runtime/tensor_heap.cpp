#include "runtime/tensor_heap.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {
namespace {

constexpr Bytes kSmallGranule{64};  // what PyTorch wants its memory aligned to
constexpr Bytes kLargeGranule{4096};

std::uint64_t bytes_for_small(std::uint32_t blocks) { return kBlockBytes.value * std::max(blocks / 4, 1u); }

TensorHeap::Place place_at(std::uint64_t offset, Bytes bytes) {
  const auto first = static_cast<std::uint32_t>(offset / kBlockBytes.value);
  const auto last = static_cast<std::uint32_t>((offset + bytes.value - 1) / kBlockBytes.value);
  return {offset, bytes, {}, {{first}, last - first + 1}};
}

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
    return place_at(part->begin + *within, bytes);
  }
  return std::nullopt;
}

std::optional<TensorHeap::Place> TensorHeap::propose_at(std::uint64_t offset, Bytes bytes) {
  CHECK(bytes > Bytes{});
  if (bytes > kBlockBytes * tensors_.size()) return std::nullopt;  // Its blocks could not be counted.
  const auto apart = apart_with(offset);
  const Place place = place_at(offset, bytes);
  if (apart == apart_.end() || !apart->wanted || place.blocks.end() > apart->blocks.end()) return std::nullopt;
  const auto next = apart->taken.lower_bound(offset);
  if (next != apart->taken.end() && next->first < offset + bytes.value) return std::nullopt;
  if (next != apart->taken.begin() && std::prev(next)->first + std::prev(next)->second > offset) return std::nullopt;
  apart->taken.emplace(offset, bytes.value);
  return place;
}

std::optional<BlockRange> TensorHeap::set_apart(std::uint32_t blocks) {
  if (blocks == 0) return BlockRange{};
  const auto hole = large_.space.take(hole_bytes({{}, blocks}));
  if (!hole) return std::nullopt;
  const std::uint64_t first = (large_.begin + *hole + kBlockBytes.value - 1) / kBlockBytes.value;
  apart_.push_back({.blocks = {{static_cast<std::uint32_t>(first)}, blocks}, .hole = *hole, .taken = {}});
  return apart_.back().blocks;
}

void TensorHeap::end_apart(BlockRange blocks) {
  if (blocks.count == 0) return;
  const auto apart = apart_with(blocks.first.value * kBlockBytes.value);
  CHECK(apart != apart_.end());
  apart->wanted = false;
  end_if_empty(apart);
}

std::vector<TensorHeap::Apart>::iterator TensorHeap::apart_with(std::uint64_t offset) {
  const BlockId block{static_cast<std::uint32_t>(offset / kBlockBytes.value)};
  return std::ranges::find_if(apart_, [&](const Apart& apart) { return apart.blocks.contains(block); });
}

void TensorHeap::end_if_empty(std::vector<Apart>::iterator apart) {
  if (apart->wanted || !apart->taken.empty()) return;
  large_.space.give_back(apart->hole, hole_bytes(apart->blocks));
  apart_.erase(apart);
}

TensorHeap::Place TensorHeap::commit(const Place& place) {
  Place kept = place;
  if (free_ids_.empty()) {
    kept.tensor = {next_id_++};
  } else {
    kept.tensor = free_ids_.back();
    free_ids_.pop_back();
  }
  for (BlockId block = place.blocks.first; block < place.blocks.end(); ++block.value) {
    if (tensors_[block.value]++ > 0) continue;
    ++in_use_;
    small_in_use_ += is_small(block);
  }
  most_small_ = std::max(most_small_, small_in_use_);
  bytes_in_use_ += place.bytes;
  CHECK(!places_.contains(place.offset));
  spare_places_.put(places_, place.offset)->second = kept;
  return kept;
}

void TensorHeap::cancel(const Place& place) {
  if (const auto apart = apart_with(place.offset); apart != apart_.end()) {
    apart->taken.erase(place.offset);
    return end_if_empty(apart);
  }
  Part& part = place.offset < large_.begin ? small_ : large_;
  part.space.give_back(place.offset - part.begin, place.bytes);
}

std::optional<TensorHeap::Place> TensorHeap::remove(std::uint64_t offset) {
  const auto found = places_.find(offset);
  if (found == places_.end()) return std::nullopt;
  const Place place = found->second;
  bytes_in_use_ -= place.bytes;
  spare_places_.erase(places_, found);
  for (BlockId block = place.blocks.first; block < place.blocks.end(); ++block.value) {
    if (--tensors_[block.value] > 0) continue;
    --in_use_;
    small_in_use_ -= is_small(block);
  }
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
