#include "runtime/tensor_heap.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {
namespace {

constexpr Bytes kSmallGranule{64};  // what PyTorch wants its memory aligned to
constexpr Bytes kLargeGranule{4096};

Bytes for_small(std::uint32_t blocks, Bytes block_bytes) { return block_bytes * std::max(blocks / 4, 1u); }

}  // namespace

TensorHeap::TensorHeap(std::uint32_t blocks, Bytes block_bytes)
    : block_bytes_(block_bytes),
      small_{0, {for_small(blocks, block_bytes), kSmallGranule}},
      large_{for_small(blocks, block_bytes).value,
             {block_bytes * blocks - for_small(blocks, block_bytes), kLargeGranule}},
      tensors_(blocks) {
  CHECK(blocks >= 2);
}

TensorHeap::Place TensorHeap::place_at(std::uint64_t offset, Bytes bytes) const {
  const auto first = static_cast<std::uint32_t>(offset / block_bytes_.value);
  const auto last = static_cast<std::uint32_t>((offset + bytes.value - 1) / block_bytes_.value);
  return {offset, bytes, {}, {{first}, last - first + 1}};
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
  if (bytes > block_bytes_ * tensors_.size()) return std::nullopt;  // Its blocks could not be counted.
  const auto apart = apart_with(offset);
  const Place place = place_at(offset, bytes);
  if (apart == apart_.end() || !apart->wanted || place.blocks.end() > apart->blocks.end()) return std::nullopt;
  const auto next = apart->taken.lower_bound(offset);
  if (next != apart->taken.end() && next->first < offset + bytes.value) return std::nullopt;
  if (next != apart->taken.begin() && std::prev(next)->first + std::prev(next)->second > offset) return std::nullopt;
  CHECK(apart->taken.emplace(offset, bytes.value).second);
  return place;
}

std::optional<BlockRange> TensorHeap::set_apart(std::uint32_t blocks) {
  if (blocks == 0) return BlockRange{};
  const auto hole = large_.space.take(hole_bytes({{}, blocks}));
  if (!hole) return std::nullopt;
  const std::uint64_t first = (large_.begin + *hole + block_bytes_.value - 1) / block_bytes_.value;
  CHECK(first + blocks <= tensors_.size());
  apart_.push_back({.blocks = {{static_cast<std::uint32_t>(first)}, blocks}, .hole = *hole, .taken = {}});
  return apart_.back().blocks;
}

void TensorHeap::end_apart(BlockRange blocks) {
  if (blocks.count == 0) return;
  const auto apart = apart_with(blocks.first.value * block_bytes_.value);
  CHECK(apart != apart_.end() && apart->blocks == blocks && apart->wanted);
  apart->wanted = false;
  end_if_empty(apart);
}

std::vector<TensorHeap::Apart>::iterator TensorHeap::apart_with(std::uint64_t offset) {
  const BlockId block{static_cast<std::uint32_t>(offset / block_bytes_.value)};
  return std::ranges::find_if(apart_, [&](const Apart& apart) { return apart.blocks.contains(block); });
}

void TensorHeap::end_if_empty(std::vector<Apart>::iterator apart) {
  if (apart->wanted || !apart->taken.empty()) return;
  large_.space.give_back(apart->hole, hole_bytes(apart->blocks));
  apart_.erase(apart);
}

TensorHeap::Place TensorHeap::commit(const Place& place) {
  CHECK(place.bytes > Bytes{} && place.blocks.end().value <= tensors_.size());
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
  CHECK(!places_.contains(place.offset));  // No tensor has come to live there.
  if (const auto apart = apart_with(place.offset); apart != apart_.end()) {
    CHECK(apart->taken.erase(place.offset) == 1);
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
    CHECK(tensors_[block.value] > 0);
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

void TensorHeap::check_invariants() const {
  std::vector<std::uint32_t> tensors(tensors_.size());
  std::vector<bool> has_id(next_id_);
  Bytes bytes;
  for (const auto& [offset, place] : places_) {
    CHECK(offset == place.offset && place.tensor.value < next_id_ && !has_id[place.tensor.value]);
    has_id[place.tensor.value] = true;
    bytes += place.bytes;
    for (BlockId block = place.blocks.first; block < place.blocks.end(); ++block.value) ++tensors[block.value];
  }
  CHECK(tensors == tensors_ && bytes == bytes_in_use_);
  CHECK(places_.size() + free_ids_.size() == next_id_);
  std::uint32_t in_use = 0, small = 0;
  for (BlockId block{0}; block.value < tensors.size(); ++block.value) {
    in_use += tensors[block.value] > 0;
    small += tensors[block.value] > 0 && is_small(block);
  }
  CHECK(in_use == in_use_ && small == small_in_use_ && small_in_use_ <= most_small_);
  for (const Apart& apart : apart_) {
    CHECK(apart.wanted || !apart.taken.empty());
    std::uint64_t free = apart.blocks.first.value * block_bytes_.value;
    for (const auto& [offset, taken] : apart.taken) {
      CHECK(offset >= free);
      free = offset + taken;
    }
    CHECK(free <= apart.blocks.end().value * block_bytes_.value);
  }
}

}  // namespace spillway
