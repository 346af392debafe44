#include "machines/cpu/children/kept_blocks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "machines/cpu/copy_block.h"

// See Note [Keeping blocks].
namespace spillway {

KeptBlocks::KeptBlocks(std::uint32_t blocks, std::byte* buffers, std::uint32_t first_transfer, Port port)
    : snapshots_(blocks), blocks_(blocks), first_transfer_(first_transfer), port_(std::move(port)) {
  for (std::uint32_t buffer = kMostWrites; buffer > 0; --buffer)
    free_.push_back(buffers + (buffer - 1) * kBlockBytes.value);
}

// Every mapped block is protected, whether somebody's or not: what is written from now on is written after the fork.
KeptBlocks::Taken KeptBlocks::take() {
  std::vector<bool> was_wanted(blocks_);  // An earlier child may still see who lived there.
  for (BlockId id{0}; id.value < blocks_; ++id.value) was_wanted[id.value] = snapshots_.wants(id);
  Taken taken{snapshots_.take(), slots_};
  for (BlockId id{0}; id.value < blocks_; ++id.value) {
    const Found found = port_.protect(id);
    if (!found.is_somebodys && !was_wanted[id.value])
      snapshots_.has_no_bytes(id);
    else if (!found.is_protected)
      snapshots_.lose(id);
    else
      ++taken.could_want;
  }
  return taken;
}

void KeptBlocks::drop(SnapshotId snapshot) {
  for (const std::uint32_t slot : snapshots_.drop(snapshot))
    if (const auto write = writes_.find(slot); write != writes_.end())
      write->second.is_wanted = false;
    else
      give_back(slot);
}

void KeptBlocks::give_back(std::uint32_t slot) {
  CHECK(slots_ > 0 && !writes_.contains(slot));
  --slots_;
  port_.give_back_slot(slot);
}

bool KeptBlocks::keep(BlockId id) {
  if (!snapshots_.wants(id)) return true;
  if (port_.is_in_pieces(id)) {
    keep_pieces(id);
    return true;
  }
  const Place place = port_.place(id);
  if (!has_room()) {
    snapshots_.lose(id);
  } else if (place.bytes == nullptr) {
    keep_in(place.slot, id);
    port_.slot_is_ours(id);
  } else {
    if (free_.empty()) return false;
    copy_and_write(id, place.bytes);
  }
  return true;
}

void KeptBlocks::keep_pieces(BlockId id) {
  if (!snapshots_.wants(id) || !port_.is_in_pieces(id)) return;
  const auto slot = has_room() ? port_.take_slot() : std::nullopt;
  if (!slot) return snapshots_.lose(id);
  if (port_.copy_to_slot(id, *slot)) return keep_in(*slot, id);
  port_.give_back_slot(*slot);
  snapshots_.lose(id);
}

// Not written from where it is: of a page that the script has dropped, the kernel would ask us in another thread's
// name.
void KeptBlocks::copy_and_write(BlockId id, const std::byte* bytes) {
  const auto slot = port_.take_slot();
  if (!slot) return snapshots_.lose(id);
  std::byte* buffer = free_.back();
  free_.pop_back();
  copy_block(buffer, bytes, kBlockBytes.value);
  keep_in(*slot, id);
  write(*slot, {.block = id, .memory = buffer});
}

void KeptBlocks::take_frame(BlockId id, std::byte* frame) {
  CHECK(frame != nullptr);
  if (!snapshots_.wants(id)) return port_.free_frame(frame);
  const auto slot = has_room() ? port_.take_slot() : std::nullopt;
  if (!slot) {
    snapshots_.lose(id);
    return port_.free_frame(frame);
  }
  keep_in(*slot, id);
  write(*slot, {.block = id, .memory = frame, .is_frame = true});
}

void KeptBlocks::keep_in(std::uint32_t slot, BlockId id) {
  snapshots_.keep(id, slot);
  ++slots_;
  ++kept_;
}

void KeptBlocks::write(std::uint32_t slot, const Write& what) {
  CHECK(writes_.emplace(slot, what).second);
  waiting_.push_back(slot);
  start_writes();
}

void KeptBlocks::start_writes() {
  while (!waiting_.empty()) {
    const auto place = std::ranges::find_if(under_way_, [](const auto& each) { return !each.has_value(); });
    if (place == under_way_.end()) return;
    const std::uint32_t slot = waiting_.front();
    waiting_.pop_front();
    const Write& what = writes_.at(slot);
    if (!what.is_wanted) {
      settle(slot, 0);
      continue;
    }
    *place = slot;
    port_.start({.id = first_transfer_ + static_cast<std::uint32_t>(place - under_way_.begin()),
                 .write = true,
                 .memory = what.memory,
                 .offset = slot * kBlockBytes.value});
  }
}

void KeptBlocks::ended(std::uint32_t number, int error) {
  CHECK(number < kMostWrites && under_way_[number].has_value());
  settle(*std::exchange(under_way_[number], std::nullopt), error);
  start_writes();
}

void KeptBlocks::settle(std::uint32_t slot, int error) {
  const auto found = writes_.find(slot);
  CHECK(found != writes_.end());
  const Write what = found->second;
  writes_.erase(found);
  CHECK(what.is_frame || free_.size() < kMostWrites);
  what.is_frame ? port_.free_frame(what.memory) : free_.push_back(what.memory);
  if (error == 0 && what.is_wanted) return;
  if (what.is_wanted) snapshots_.lose(what.block, slot);
  give_back(slot);
}

std::size_t KeptBlocks::under_way() const {
  return static_cast<std::size_t>(std::ranges::count_if(under_way_, [](const auto& each) { return each.has_value(); }));
}

KeptBlocks::Seen KeptBlocks::find(SnapshotId snapshot, BlockId id) const {
  using Where = Snapshots::View::Where;
  const Snapshots::View view = snapshots_.find(snapshot, id);
  switch (view.where) {
    case Where::block:
      return {Seen::Where::there, port_.place(id)};
    case Where::slot: {
      const auto write = writes_.find(view.slot);
      return {Seen::Where::there, {write == writes_.end() ? nullptr : write->second.memory, view.slot}};
    }
    case Where::nowhere:
      return {Seen::Where::nowhere, {}};
    case Where::lost:
      return {Seen::Where::lost, {}};
  }
  CHECK(false && "a view that nobody knows");
}

}  // namespace spillway
