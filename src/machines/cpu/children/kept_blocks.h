#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "machines/cpu/children/snapshots.h"
#include "machines/real/block_io.h"

namespace spillway {

// Note [Keeping blocks]
// What snapshots want of a block is kept in the spill file before the block changes or goes, and nobody waits for the
// disk meanwhile:
// - A slot that holds the bytes already is the snapshots' from then on. So what leaves costs no second copy.
// - Bytes in memory are copied to a buffer, from which they are written while the block changes. Buffers are few: where
//   none is free, who wants to change the block waits until a write has ended.
// - A block in pieces is copied to a slot of the snapshots' as a whole, and the disk waited for: that is rare.
// - What dies in host memory leaves its frame to us: that is written as it is, and given up then.
// Until bytes are in their slot they are read from memory. If they cannot be written, they are lost to the snapshots,
// and to nobody else. A slot that no snapshot reads any more is not free before its write has ended.
//
// Used by the run loop only, but for allow().
class KeptBlocks {
 public:
  static constexpr std::uint32_t kMostWrites = 4;  // under way at a time; each has a buffer, if it needs one

  // Where a block's bytes are: in memory, else (null) in the slot.
  struct Place {
    const std::byte* bytes = nullptr;
    std::uint32_t slot = 0;
  };
  // A block as a fork finds it: it is somebody's, and nobody writes to it without being seen.
  struct Found {
    bool is_somebodys = false;
    bool is_protected = false;
  };
  // What is asked of the machine whose blocks these are.
  struct Port {
    std::function<Place(BlockId)> place;
    std::function<Found(BlockId)> protect;
    std::function<bool(BlockId)> is_in_pieces;
    // The bytes of such a block, wherever its pieces are; waits for the disk. False: that has failed.
    std::function<bool(BlockId, std::uint32_t slot)> copy_to_slot;
    std::function<std::optional<std::uint32_t>()> take_slot;
    std::function<void(std::uint32_t slot)> give_back_slot;
    std::function<void(BlockId)> slot_is_ours;  // and the block's no more
    std::function<void(std::byte* frame)> free_frame;
    std::function<void(const Transfer&)> start;
  };
  // `buffers`: memory of kMostWrites blocks. Transfers are numbered from `first_transfer` on.
  KeptBlocks(std::uint32_t blocks, std::byte* buffers, std::uint32_t first_transfer, Port port);

  // Of all blocks as they are now, which are protected for it. `could_want`: so many slots, for it and those before.
  struct Taken {
    SnapshotId snapshot;
    std::uint32_t could_want = 0;
  };
  Taken take();
  void hold(SnapshotId snapshot) { snapshots_.hold(snapshot); }
  void drop(SnapshotId snapshot);

  // So many slots may be kept, from now on. Any thread.
  void allow(std::uint32_t slots) { allowed_.store(slots, std::memory_order_release); }
  std::uint32_t slots() const { return slots_; }  // that are kept
  std::uint64_t kept() const { return kept_; }    // so far
  bool is_needed() const { return !snapshots_.empty() || slots_ > 0; }

  bool wants(BlockId id) const { return snapshots_.wants(id); }
  // The block is about to change or to go. False: not yet; to be asked again once a transfer has ended.
  [[nodiscard]] bool keep(BlockId id);
  // No more is asked for a block that is in pieces.
  void keep_pieces(BlockId id);
  // The block has gone, and its bytes are in this frame, which is given up when nobody needs it.
  void take_frame(BlockId id, std::byte* frame);
  // Somebody may have changed the block.
  void lose(BlockId id) {
    if (wants(id)) snapshots_.lose(id);
  }

  // What a snapshot sees.
  struct Seen {
    enum class Where : std::uint8_t { there, nowhere, lost };
    Where where = Where::nowhere;
    Place place;
  };
  Seen find(SnapshotId snapshot, BlockId id) const;

  // The transfer of this number, counted from the first.
  void ended(std::uint32_t number, int error);
  std::size_t under_way() const;

 private:
  struct Write {
    BlockId block;
    std::byte* memory = nullptr;
    bool is_frame = false;  // else a buffer of ours
    bool is_wanted = true;  // by a snapshot
  };
  bool has_room() const { return slots_ < allowed_.load(std::memory_order_acquire); }
  void copy_and_write(BlockId id, const std::byte* bytes);
  void keep_in(std::uint32_t slot, BlockId id);
  void write(std::uint32_t slot, const Write& what);
  void start_writes();
  void settle(std::uint32_t slot, int error);
  void give_back(std::uint32_t slot);

  Snapshots snapshots_;
  std::uint32_t blocks_;
  std::uint32_t first_transfer_;
  Port port_;
  std::vector<std::byte*> free_;                                     // buffers
  std::unordered_map<std::uint32_t, Write> writes_;                  // by slot: under way, or to be
  std::deque<std::uint32_t> waiting_;                                // slots
  std::array<std::optional<std::uint32_t>, kMostWrites> under_way_;  // slots, by the transfer's number
  std::uint32_t slots_ = 0;
  std::uint64_t kept_ = 0;
  std::atomic<std::uint32_t> allowed_{0};
};

}  // namespace spillway
