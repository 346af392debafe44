#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/ids.h"

namespace spillway {

using SnapshotId = Id<struct SnapshotTag>;  // later ones are greater

// Note [Snapshots]
// A forked child sees memory as it was at the fork. Its parent goes on writing, so what a child may still read of a
// block has to be kept before the block changes or goes: once for all children that were forked since its last change.
// A snapshot costs nothing for blocks that stay as they are.
//
// Knows slots of the spill file by their numbers only; the caller keeps the bytes there.
class Snapshots {
 public:
  struct View {
    enum class Where : std::uint8_t {
      block,    // as it is now
      slot,     // kept
      nowhere,  // no tensor had bytes there
      lost,     // they could not be kept
    };
    Where where = Where::block;
    std::uint32_t slot = 0;
  };

  explicit Snapshots(std::uint32_t blocks) : known_(blocks) {}

  // Of all blocks as they are now. It lasts until as many drop() as hold(), and one drop() more.
  SnapshotId take();
  void hold(SnapshotId snapshot) { ++holders_.at(snapshot); }
  // The slots that nobody reads any more.
  std::vector<std::uint32_t> drop(SnapshotId snapshot);
  bool empty() const { return holders_.empty(); }

  // Whether some snapshot has the block as it is now: it must be kept before it changes.
  bool wants(BlockId block) const { return !empty() && known_[block.value] < holders_.rbegin()->first; }
  // From here on the block is another one for all snapshots so far.
  void keep(BlockId block, std::uint32_t slot) { settle(block, {View::Where::slot, slot}); }
  void lose(BlockId block) { settle(block, {View::Where::lost}); }
  // What was to be kept there could not be.
  void lose(BlockId block, std::uint32_t slot);
  // The newest one alone: no other wants the block.
  void has_no_bytes(BlockId block) {
    CHECK(holders_.size() < 2 || known_[block.value] >= std::next(holders_.rbegin())->first);
    known_[block.value] = newest();
  }

  View find(SnapshotId snapshot, BlockId block) const;

 private:
  struct Version {  // of a block, for the snapshots after `after` up to `last`
    SnapshotId after, last;
    View view;
  };
  SnapshotId newest() const { return empty() ? SnapshotId{} : holders_.rbegin()->first; }
  void settle(BlockId block, View view);

  SnapshotId last_;
  std::map<SnapshotId, std::uint32_t> holders_;
  std::vector<SnapshotId> known_;  // by block: snapshots up to this one do not depend on what it is now
  std::unordered_map<BlockId, std::vector<Version>> versions_;  // in order
};

}  // namespace spillway
