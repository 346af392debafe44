#include "memory/page_table.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {

PageTable::PageTable(PerTier<Bytes> capacity) : capacity_(capacity) {}

void PageTable::add_blocks(std::uint32_t count, Bytes bytes_each) {
  CHECK(bytes_each > Bytes{} && bytes_each <= kBlockBytes);
  CHECK(count < kNone - block_count());
  blocks_.resize(blocks_.size() + count, Block{.bytes = static_cast<std::uint32_t>(bytes_each.value)});
}

PageTable::Block& PageTable::at(BlockId id) {
  CHECK(id.value < blocks_.size());
  return blocks_[id.value];
}

void PageTable::retain(BlockId id) {
  Block& block = at(id);
  const bool revived = block.tensors == 0 && block.listed;
  if (revived) unlist(id.value);
  ++block.tensors;
  block.held = false;
  if (revived) list(id.value);
}

void PageTable::release(BlockId id) {
  Block& block = at(id);
  CHECK(block.tensors > 0);
  const bool dies = block.tensors == 1 && block.listed;
  if (dies) unlist(id.value);
  --block.tensors;
  if (dies) list(id.value);
}

void PageTable::hold(BlockId id) {
  Block& block = at(id);
  if (block.tensors > 0 || block.held) return;
  if (block.listed) unlist(id.value);
  block.held = true;
  if (on_device(block.state)) list(id.value);
}

void PageTable::pin(BlockId id) { ++at(id).pins; }

void PageTable::unpin(BlockId id) {
  Block& block = at(id);
  CHECK(block.pins > 0);
  if (--block.pins > 0 || !block.listed || &order_of(block) != &live_) return;
  // If it stands before the cursor, not everything there is pinned any more.
  if (cursor_ == kNone || block.listed_at < blocks_[cursor_].listed_at) cursor_ = id.value;
}

void PageTable::populate(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::populate);
  take(Tier::device, block);
  list(id.value);
}

void PageTable::evict(BlockId id, Tier to) {
  CHECK(to != Tier::device);
  Block& block = at(id);
  const bool has_copy = block.state == BlockState::clean;
  CHECK(!has_copy || block.lower == to);
  step(block, BlockEvent::evict);
  unlist(id.value);
  if (has_copy)
    drop_copy(id.value);
  else
    take(to, block);
  block.lower = to;
  leaving_ += Bytes{block.bytes};
}

void PageTable::evicted(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::evicted);
  leaving_ -= Bytes{block.bytes};
  give(Tier::device, block);
}

void PageTable::kept(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::kept);
  leaving_ -= Bytes{block.bytes};
  give(block.lower, block);
  list(id.value);
}

void PageTable::fetch(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::fetch);
  take(Tier::device, block);
}

void PageTable::fetched(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::fetched);
  give(block.lower, block);
  list(id.value);
}

void PageTable::copied(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::copied);
  CHECK(copies_[block.lower].insert(id.value).second);
  copy_bytes_[block.lower] += Bytes{block.bytes};
  list(id.value);
}

void PageTable::drop_copy(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::drop_copy);
  drop_copy(id.value);
  give(block.lower, block);
}

void PageTable::drop_copy(std::uint32_t index) {
  const Block& block = blocks_[index];
  CHECK(copies_[block.lower].erase(index) == 1);
  copy_bytes_[block.lower] -= Bytes{block.bytes};
}

std::optional<BlockId> PageTable::clean_victim() const {
  for (const Tier tier : {Tier::host, Tier::ssd})
    for (const std::uint32_t index : copies_[tier])
      if (blocks_[index].pins == 0 && blocks_[index].tensors > 0) return BlockId{index};
  return std::nullopt;
}

void PageTable::fetch_failed(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::fetch_failed);
  give(Tier::device, block);
}

void PageTable::drop(BlockId id) {
  Block& block = at(id);
  const bool on_device = block.state == BlockState::resident;
  step(block, BlockEvent::drop);
  if (on_device) unlist(id.value);
  block.held = false;
  give(on_device ? Tier::device : block.lower, block);
}

void PageTable::place(BlockId id, Tier tier) {
  Block& block = at(id);
  CHECK(block.state == BlockState::empty);
  if (tier == Tier::device) return populate(id);
  take(tier, block);
  block.state = BlockState::stored;
  block.lower = tier;
}

std::optional<BlockId> PageTable::victim() {
  if (dead_.head != kNone) return BlockId{dead_.head};
  while (cursor_ != kNone && blocks_[cursor_].pins > 0) cursor_ = blocks_[cursor_].next;
  if (cursor_ == kNone) return std::nullopt;
  return BlockId{cursor_};
}

std::uint64_t PageTable::residency_hash(BlockRange blocks, std::uint64_t seed) const {
  CHECK(contains(blocks));
  std::uint64_t hash = seed;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    const Block& block = blocks_[id.value];
    const bool below = block.state != BlockState::empty && block.state != BlockState::resident;
    const auto value =
        static_cast<std::uint64_t>(block.state) * 3 + (below ? static_cast<std::uint64_t>(block.lower) : 0);
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

void PageTable::list(std::uint32_t index) {
  Block& block = blocks_[index];
  CHECK(!block.listed);
  Order& order = order_of(block);
  block.listed = true;
  block.listed_at = ++listings_;
  block.previous = order.tail;
  block.next = kNone;
  if (order.tail == kNone)
    order.head = index;
  else
    blocks_[order.tail].next = index;
  order.tail = index;
  if (&order == &live_ && cursor_ == kNone) cursor_ = index;
}

void PageTable::unlist(std::uint32_t index) {
  Block& block = blocks_[index];
  CHECK(block.listed);
  Order& order = order_of(block);
  if (cursor_ == index) cursor_ = block.next;
  if (block.previous == kNone)
    order.head = block.next;
  else
    blocks_[block.previous].next = block.next;
  if (block.next == kNone)
    order.tail = block.previous;
  else
    blocks_[block.next].previous = block.previous;
  block.listed = false;
}

void PageTable::step(Block& block, BlockEvent event) {
  const auto to = next(block.state, event);
  CHECK(to.has_value());
  block.state = *to;
}

void PageTable::take(Tier tier, const Block& block) {
  CHECK(room(tier) >= Bytes{block.bytes});
  used_[tier] += Bytes{block.bytes};
  peak_[tier] = std::max(peak_[tier], used_[tier]);
}

void PageTable::give(Tier tier, const Block& block) { used_[tier] -= Bytes{block.bytes}; }

void PageTable::check_invariants() const {
  PerTier<Bytes> used, copies;
  Bytes leaving;
  std::uint32_t resident = 0;
  for (const Block& block : blocks_) {
    const Bytes bytes{block.bytes};
    const bool below = block.state != BlockState::empty && block.state != BlockState::resident;
    const bool above = block.state != BlockState::empty && block.state != BlockState::stored;
    if (above) used.device += bytes;
    if (below) used[block.lower] += bytes;
    if (block.state == BlockState::leaving) leaving += bytes;
    CHECK(block.listed == on_device(block.state));
    const bool clean = block.state == BlockState::clean;
    if (clean) copies[block.lower] += bytes;
    for (const Tier tier : kTiers)
      CHECK(copies_[tier].contains(static_cast<std::uint32_t>(&block - blocks_.data())) ==
            (clean && block.lower == tier));
    resident += block.listed;
  }
  CHECK(used == used_ && copies == copy_bytes_ && leaving == leaving_);
  for (const Tier tier : kTiers) CHECK(used_[tier] <= capacity_[tier] && used_[tier] <= peak_[tier]);
  std::uint32_t listed = 0;
  for (const Order* order : {&live_, &dead_}) {
    bool before_cursor = order == &live_;
    std::uint32_t previous = kNone;
    for (std::uint32_t at = order->head; at != kNone; previous = at, at = blocks_[at].next, ++listed) {
      if (at == cursor_) before_cursor = false;
      CHECK(blocks_[at].listed && blocks_[at].previous == previous);
      CHECK((blocks_[at].tensors > 0 || blocks_[at].held) == (order == &live_));
      CHECK(blocks_[at].tensors == 0 || !blocks_[at].held);
      CHECK(!before_cursor || blocks_[at].pins > 0);
    }
    CHECK(order->tail == previous);
  }
  CHECK(listed == resident);
}

}  // namespace spillway
