#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "memory/block_state.h"
#include "memory/pieces.h"
#include "memory/tier.h"

namespace spillway {

// Where every block is, how many bytes each tier holds, and in which order blocks came to the device. A plain value
// with one owner (the executor); it knows no policy and no clock. All calls are O(1) but those that make or look for
// copies on lower tiers, O(log copies) where not said otherwise; those for pieces that come or leave, O(log pieces);
// and victim(), which looks at each pinned block once until one before it is unpinned, and at pinned pieces that come
// back.
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
  // What counts as a block where room is reckoned in blocks: no block is larger.
  Bytes block_bytes() const { return block_bytes_; }

  // Blocks that there are; of pieces, those of split blocks.
  bool contains(BlockRange blocks) const;

  // These four, and bytes(), are for blocks and pieces that there are.
  BlockState state(BlockId block) const { return at(block).state; }
  // Meaningful when clean, leaving, stored or arriving.
  Tier lower(BlockId block) const { return at(block).lower; }
  Bytes bytes(BlockId block) const { return {at(block).bytes}; }
  bool live(BlockId block) const { return at(block).tensors > 0; }
  bool shared(BlockId block) const { return at(block).tensors > 1; }
  bool pinned(BlockId block) const { return at(block).pins > 0; }

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
  // See Note [Pieces]. A block that is stored on the SSD; and a split one of which nothing is on the device or moves.
  // Unless it is dead, what was touched never is stored then, too.
  void split(BlockId block);
  void join(BlockId block);
  bool is_split(BlockId block) const { return state(block) == BlockState::in_pieces; }
  // No piece of this split block is on the device or moves.
  bool is_below(BlockId block) const { return at(block).pieces_up == 0; }
  // The cold start: an empty block's bytes are on this tier from the beginning.
  void place(BlockId block, Tier tier);

  Bytes capacity(Tier tier) const { return capacity_[tier]; }
  Bytes used(Tier tier) const { return used_[tier]; }
  Bytes room(Tier tier) const { return capacity_[tier] - used_[tier]; }
  // Frames whose block has left, and which are not free yet; they count as used.
  void hold_frames(Bytes bytes);
  void free_frames(Bytes bytes);
  Bytes peak(Tier tier) const { return peak_[tier]; }
  Bytes leaving() const { return leaving_; }  // device bytes that evictions in flight will free

  // The block to give up next: a dead one if there is any that is not held, else the least recently migrated that is
  // not pinned. What comes back stays longer: one of those goes, by chance (the same each run), only where all others
  // together have less than kShareOfNew of the device.
  std::optional<BlockId> victim();
  static constexpr std::uint64_t kShareOfNew = 8;  // an eighth
  // Whole blocks that are the next victims are parked, a few at a time, to see whether somebody touches them: then they
  // are the last. The next to park, if there is any.
  std::optional<BlockId> next_to_park();
  void park(BlockId block);
  void touched(BlockId block);
  // This piece, which is stored, comes back soon after it has left; or not.
  void comes_back(BlockId piece, bool does);
  // A clean block with its copy on that tier, if there is one.
  std::optional<BlockId> copy_on(Tier tier) const {
    return copies_[tier].empty() ? std::nullopt : std::optional(BlockId{*copies_[tier].begin()});
  }
  Bytes copies(Tier tier) const { return copy_bytes_[tier]; }
  // What could leave without room on a lower tier, a piece or a clean block; O(clean blocks and pieces).
  std::optional<BlockId> placed_victim() const;
  std::optional<BlockId> piece() const;  // that could leave; O(pieces)
  // A block on the device that no tensor lives in and that is not held: whether it is one; the one that died first.
  bool is_dead(BlockId block) const {
    const Block& one = at(block);
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
    bool listed = false;  // in one of the lists below
    bool comes_back = false;
    bool parked = false;
    bool held = false;
    std::uint32_t tensors = 0;
    std::uint32_t pins = 0;
    std::uint32_t bytes = 0;
    std::uint32_t pieces_up = 0;  // of a split one: on the device, or on their way
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
    std::uint32_t place = 0;      // in come_back_
    std::uint64_t listed_at = 0;  // counts on: whoever stands before in a list has less
  };
  // Blocks on the device in the order of their arrival: an intrusive list.
  struct Order {
    std::uint32_t head = kNone, tail = kNone;
  };

  using Pieces = std::array<Block, kPiecesPerBlock>;
  const Block& at(BlockId id) const {
    return is_piece(id) ? (*pieces_[block_of(id).value])[place_in_block(id)] : blocks_[id.value];
  }
  Block& at(BlockId id) { return const_cast<Block&>(std::as_const(*this).at(id)); }
  std::uint64_t most_parked() const {
    return std::clamp<std::uint64_t>(capacity(Tier::device).value / block_bytes_.value / 8, 1, 8);
  }
  void retain_one(BlockId id);
  void release_one(BlockId id);
  // Nothing: it is in come_back_.
  const Order* order_of(const Block& block) const {
    const bool is_live = block.tensors > 0 || block.held;
    return !is_live ? &dead_ : block.comes_back ? nullptr : block.parked ? &parked_ : &live_;
  }
  Order* order_of(const Block& block) { return const_cast<Order*>(std::as_const(*this).order_of(block)); }
  void list(std::uint32_t index);
  void unlist(std::uint32_t index);
  void step(Block& block, BlockEvent event);
  void take(Tier tier, BlockId id);
  void give(Tier tier, BlockId id);
  void drop_copy(std::uint32_t index);
  void end_pieces(BlockId id);
  template <class F>
  void for_each_piece(BlockId block, F&& call);

  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<Pieces>> pieces_;  // by block: of those that are split
  Bytes block_bytes_ = kBlockBytes;
  PerTier<Bytes> capacity_, used_, peak_;
  Bytes held_frames_;  // of the device, without a block
  Bytes leaving_;
  PerTier<std::set<std::uint32_t>> copies_;  // clean blocks
  PerTier<Bytes> copy_bytes_;
  Order live_, dead_, parked_;
  std::uint32_t parked_count_ = 0;        // in parked_
  Bytes live_bytes_;                      // in live_ and parked_
  std::vector<std::uint32_t> come_back_;  // in any order
  std::set<std::uint32_t> listed_pieces_;
  std::uint64_t random_ = 1;
  std::uint64_t listings_ = 0;
  std::uint32_t cursor_ = kNone;  // in live_; before it all are known to be pinned
};

}  // namespace spillway
