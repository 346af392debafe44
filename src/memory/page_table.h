#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "memory/block_state.h"
#include "memory/tier.h"

namespace spillway {

// Where every block is, how many bytes each tier holds, and in which order blocks came to the device. A plain value
// with one owner (the executor); it knows no policy and no clock. All calls are O(1) but those that make or look for
// copies on lower tiers, O(log copies) where not said otherwise, and victim(), which looks at each pinned block once
// until one before it is unpinned.
//
// Accounting: the device holds a block from the moment its frame is taken (populate, fetch) until its bytes are durable
// below (evicted) or dropped; a lower tier from the start of the eviction until its copy is given up: when the bytes
// are mapped above (fetched), or later for what is kept as a copy. A block in flight counts on both sides, so no tier
// can be overfilled by moves that cross.
class PageTable {
 public:
  explicit PageTable(PerTier<Bytes> capacity);

  // Appends blocks of this size, all empty.
  void add_blocks(std::uint32_t count, Bytes bytes_each);
  std::uint32_t block_count() const { return static_cast<std::uint32_t>(blocks_.size()); }

  bool contains(BlockRange blocks) const {
    return blocks.first.value <= block_count() && blocks.count <= block_count() - blocks.first.value;
  }

  // These four, and bytes(), are for blocks that there are.
  BlockState state(BlockId block) const { return blocks_[block.value].state; }
  // Meaningful when clean, leaving, stored or arriving.
  Tier lower(BlockId block) const { return blocks_[block.value].lower; }
  Bytes bytes(BlockId block) const { return {blocks_[block.value].bytes}; }
  bool live(BlockId block) const { return blocks_[block.value].tensors > 0; }
  bool shared(BlockId block) const { return blocks_[block.value].tensors > 1; }
  bool pinned(BlockId block) const { return blocks_[block.value].pins > 0; }

  // A tensor begins and ceases to live in the block.
  void retain(BlockId block);
  void release(BlockId block);

  // A pinned block is no victim while a tensor lives in it. Pins nest.
  void pin(BlockId block);
  void unpin(BlockId block);

  // A dead block that could not be dropped takes its turn among the live ones, until it is dropped or lives again:
  // dead blocks are the first victims, and this one would always be the first of them.
  void hold(BlockId block);

  // State changes; each CHECKs that the rule allows it and that the tier it fills has room.
  void populate(BlockId block);
  void evict(BlockId block, Tier to);  // a clean block to where its copy is
  void evicted(BlockId block);
  void kept(BlockId block);
  void fetch(BlockId block);
  void fetched(BlockId block);
  void copied(BlockId block);
  void drop_copy(BlockId block);
  void fetch_failed(BlockId block);
  void drop(BlockId block);
  // The cold start: an empty block's bytes are on this tier from the beginning.
  void place(BlockId block, Tier tier);

  Bytes capacity(Tier tier) const { return capacity_[tier]; }
  Bytes used(Tier tier) const { return used_[tier]; }
  Bytes room(Tier tier) const { return capacity_[tier] - used_[tier]; }
  Bytes peak(Tier tier) const { return peak_[tier]; }
  Bytes leaving() const { return leaving_; }  // device bytes that evictions in flight will free

  // The block to give up next: a dead one if there is any that is not held, else the least recently migrated that is
  // not pinned.
  std::optional<BlockId> victim();
  // A clean block with its copy on that tier, if there is one.
  std::optional<BlockId> copy_on(Tier tier) const {
    return copies_[tier].empty() ? std::nullopt : std::optional(BlockId{*copies_[tier].begin()});
  }
  Bytes copies(Tier tier) const { return copy_bytes_[tier]; }
  // A clean block that could leave; O(clean blocks).
  std::optional<BlockId> clean_victim() const;
  // A block on the device that no tensor lives in and that is not held: whether it is one; the one that died first.
  bool is_dead(BlockId block) const {
    const Block& one = blocks_[block.value];
    return one.listed && one.tensors == 0 && !one.held;
  }
  std::optional<BlockId> dead() const {
    return dead_.head == kNone ? std::nullopt : std::optional(BlockId{dead_.head});
  }

  // Folds the blocks' states into a hash: equal for equal residency.
  std::uint64_t residency_hash(BlockRange blocks, std::uint64_t seed) const;

  // CHECKs everything that must hold between two calls; O(blocks). For tests.
  void check_invariants() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Block {
    BlockState state = BlockState::empty;
    Tier lower = Tier::device;
    bool listed = false;  // in one of the two lists below
    bool held = false;
    std::uint32_t tensors = 0;
    std::uint32_t pins = 0;
    std::uint32_t bytes = 0;
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
    std::uint64_t listed_at = 0;  // counts on: whoever stands before in a list has less
  };
  // Blocks on the device in the order of their arrival: an intrusive list.
  struct Order {
    std::uint32_t head = kNone, tail = kNone;
  };

  Block& at(BlockId id);
  Order& order_of(const Block& block) { return block.tensors > 0 || block.held ? live_ : dead_; }
  void list(std::uint32_t index);
  void unlist(std::uint32_t index);
  void step(Block& block, BlockEvent event);
  void take(Tier tier, const Block& block);
  void give(Tier tier, const Block& block);
  void drop_copy(std::uint32_t index);

  std::vector<Block> blocks_;
  PerTier<Bytes> capacity_, used_, peak_;
  Bytes leaving_;
  PerTier<std::set<std::uint32_t>> copies_;  // clean blocks
  PerTier<Bytes> copy_bytes_;
  Order live_, dead_;
  std::uint64_t listings_ = 0;
  std::uint32_t cursor_ = kNone;  // in live_; before it all are known to be pinned
};

}  // namespace spillway
