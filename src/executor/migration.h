#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "executor/foresight.h"
#include "executor/machine.h"
#include "executor/move_queue.h"
#include "executor/protection.h"
#include "executor/tensor_victims.h"
#include "memory/page_table.h"

namespace spillway {

struct MigrationOptions {
  bool victims_to_host = true;          // false: victims go to the SSD only
  bool keeps_copies = false;            // as in FollowOptions, whatever the plan says
  bool keep_dead_blocks = false;        // true: frames of dead blocks stay, to be reused or dropped when room is needed
  bool splits_blocks = true;            // false: who waits needs all that it waits for at once, and whole (launches)
  bool host_keeps_copies = false;       // copies are kept in host memory as on the SSD; false: frames themselves move
  std::uint32_t chunk_blocks = 16;      // the most that one Move carries
  std::uint32_t planned_in_flight = 1;  // with so many blocks in flight on a link no planned move is started on it
  // Whole tensors leave, for others one after the other: what is wanted arrives once enough has left.
  std::optional<Bytes> whole_tensors_of = {};  // at least so large; nothing: blocks leave
};

// Why nothing can go on: without a remedy of ours, so the run ends with it.
struct Failure {
  enum class Kind : std::uint8_t {
    no_room,           // what must leave the device fits no lower tier
    device_too_small,  // nothing is left to leave, and yet what is wanted does not fit: so many bytes are missing
    unreadable,        // a lower tier does not give a block's bytes back
  };
  Kind kind;
  Bytes bytes;
};

// Turns wishes (a fault, a kernel's need, a planned move) into Moves, one queue for each link and urgency: faults
// first, then what a kernel waits for, then what the plan wants (G10 section 4.5: queues and arbiter). A wish is looked
// at again each time a chunk of it can start, so it may be stale: what has already happened to a block is skipped.
//
// Room on the device is made for faults and needs; a planned prefetch waits in its queue until there is room, unless
// make_room_ahead() says otherwise.
class Migration {
 public:
  Migration(PageTable table, MigrationOptions options, ProtectionOptions protection);
  Migration(const Migration&) = delete;
  Migration& operator=(const Migration&) = delete;

  const PageTable& table() const { return table_; }
  Protection& protection() { return protection_; }

  // All drops that were refused have been told.
  void begin_event() { ++event_; }
  void retain(BlockRange blocks);
  void hold(BlockRange blocks);  // see PageTable::hold()
  // What nobody uses any more loses its bytes at once, or as soon as its move is over.
  void release(BlockRange blocks, std::vector<Command>& out);

  // The stream waits for a block or a piece. A block that has left while a kernel ran that still runs is split, and its
  // pieces come one at a time, or more where one after the other is wanted; once no such kernel runs, whole.
  // True if it was split now.
  bool faulted(BlockId block, StreamId stream, std::vector<Command>& out);
  // Those at the start of these that nobody has touched yet and whose frames nothing else waits for, nor would.
  BlockRange free_to_touch(BlockRange blocks) const;
  // The stream touches these, one after the other and at once.
  void touched_first(BlockRange blocks, StreamId stream, std::vector<BlockRange>& arrived, std::vector<Command>& out);
  // How often blocks have left so far; and what that was when the oldest kernel started that runs now, if any does.
  std::uint64_t departures() const { return departures_; }
  // `one_does_not_fit`: of those that run now one uses more than the device, and has said so.
  void kernels_run_since(std::optional<std::uint64_t> departures, bool one_does_not_fit) {
    running_since_ = departures;
    one_does_not_fit_ = one_does_not_fit;
  }
  // Whether kernels go on to fault on the block's pieces: nobody waits for all of it.
  bool is_used_in_pieces(BlockId block) const { return table_.is_split(block) && has_left_running_kernel(block); }

  // The blocks are wanted on the device: stored ones arrive, empty ones get a frame, leaving ones are called back.
  void want(BlockRange blocks, Urgency urgency, StreamId stream, std::vector<Command>& out);

  struct FollowOptions {
    bool shared_blocks = false;  // planned evictions may take blocks in which several tensors live
    bool keeps_copies = false;   // what comes unplanned leaves its copy below
  };
  // Another plan is followed from now on: what the last one wanted is forgotten.
  void begin_plan(FollowOptions options, Foresight foresight);
  Foresight& foresight() { return foresight_; }
  bool keeps_copies() const { return plan_.keeps_copies; }
  // What will be touched for the first time very soon, by kernel, and nothing else: blocks that have no frame get one,
  // as soon as nothing is more urgent and something can leave for it: for the first kernel whatever nobody uses, for
  // the others only what the plan does not keep. What was expected and has not come gives its frames up.
  void expect(std::span<const std::vector<BlockRange>> births, std::vector<Command>& out);
  void touched(BlockId parked) { table_.touched(parked); }
  void drop_planned_prefetches();
  // A kernel uses all of a tensor.
  void uses_tensor(BlockRange blocks);
  // Somebody writes to these blocks from now on: copies below are worth nothing.
  void written(BlockRange blocks, std::vector<Command>& out);
  // From now on room is made for planned prefetches, and for so much that will be made: blocks leave that nothing
  // protects (DeepUM section 5.1). Nothing: what is only planned waits until there is room.
  void make_room_ahead(std::optional<Bytes> births) { births_ahead_ = births; }
  // Planned moves of a tensor; false if there is nothing to move (the command is skipped). Each replaces what is left
  // of the opposite ones before it.
  bool plan_eviction(BlockRange blocks, Tier to);
  bool plan_prefetch(BlockRange blocks, bool keeps_copy);
  // The launch runs and only reads these: they may leave, and their frames are free once both have ended. Of one that
  // can fault, at once: it may never end otherwise, if it waits for room.
  void leave_during(LaunchId launch, BlockRange blocks, bool faults);
  void ended(LaunchId launch);
  // Whether planned moves of these blocks, up or down, wait or are on their way, and something is.
  bool is_under_way(BlockRange blocks, bool up) const;
  // A kernel starts to use these blocks, or they are dead: evictions of them that still wait are pointless.
  void drop_planned_evictions(BlockRange blocks);
  // The parts of `blocks` for which a planned prefetch has been issued and still waits in its queue.
  std::vector<BlockRange> issued_prefetches(BlockRange blocks) const;

  // Issues all that can start now. Arrivals that need no move (first touches) are appended to `arrived`.
  void pump(std::vector<BlockRange>& arrived, std::vector<Command>& out);

  // Answers from the machine. Blocks that are now resident, or resident again, are appended to `arrived`.
  void done(MoveId move, std::vector<BlockRange>& arrived, std::vector<Command>& out);
  void failed(MoveId move, bool cancelled, std::vector<BlockRange>& arrived, std::vector<Command>& out);

  const PerLink<Bytes>& moved() const { return moved_; }
  Bytes dropped_clean() const { return dropped_clean_; }  // left for the SSD without a copy, as far as is known here
  const std::optional<Failure>& failure() const { return failure_; }  // set for good

  // The blocks on their way are those of moves that the machine was asked for, and no others; O(blocks). For tests.
  void check_invariants() const;

 private:
  struct Asker {
    Urgency urgency;
    StreamId stream{};           // meaningful for faults and needs
    std::uint32_t failures = 0;  // of reads, in a row
  };
  struct Wish {
    BlockRange rest;
    Asker by;
    bool begun = false;
  };
  struct Flight {
    Move move;
    Asker by;
    bool recalled = false;  // a Cancel is on its way
  };

  struct Held {  // frames that a launch still reads
    LaunchId launch;
    BlockRange blocks;
    Bytes left{};  // of these, so far
  };

  struct Expected {  // will be touched for the first time soon
    BlockId block;
    bool now = false;  // by the kernel that is about to start
  };

  // A kernel runs that does not fit.
  bool kernel_is_oversized() const {
    return one_does_not_fit_ || (running_since_ && last_split_left_at_ > *running_since_);
  }
  struct Piece {
    Bytes left_at;                 // left_ when it had left last; 0: it has not
    Bytes came_at;                 // came_ when it was asked for last
    std::uint32_t came_after = 0;  // so many were asked for together, of which it was the last; else 0
  };
  struct Pieces {                  // of a split block
    std::uint64_t dropped_at = 0;  // at which event some were dropped last
    std::array<Piece, kPiecesPerBlock> each{};
  };
  bool has_left_running_kernel(BlockId block) const {
    return running_since_ && left_at_[block.value] > *running_since_;
  }
  void used(BlockRange blocks);
  void has_left(BlockId id);
  void split(BlockId block, std::vector<Command>& out);
  BlockRange with_read_ahead(BlockId piece) const;
  void note_arrival(BlockRange pieces);
  void bury_pieces(BlockId block, std::vector<Command>& out);
  bool is_below(BlockId block) const;
  void give_up_dead_pieces(std::vector<Command>& out);
  void forget_pieces(BlockId block);
  // Sends away what is left of a split block's pieces; true once it is whole again.
  bool join(BlockId block, const Asker& by, std::vector<Command>& out);
  // The longest run at the start of `rest`, at most a chunk, in the state of its first block.
  BlockRange first_chunk(BlockRange rest) const;
  std::uint32_t most_in_chunk(BlockId id) const { return is_piece(id) ? kPiecesPerBlock : options_.chunk_blocks; }
  Bytes bytes_of(BlockRange blocks) const;
  bool eviction_possible(BlockId block) const;
  void ask(const Wish& wish);
  void recall(BlockId block, std::vector<Command>& out);
  void bury(BlockId block, std::vector<Command>& out);
  void drop(BlockId dead, std::vector<Command>& out);
  bool serve_urgent(std::vector<BlockRange>& arrived, std::vector<Command>& out);
  enum class Served : std::uint8_t { wholly, waits_for_move, waits_for_room };
  Served serve(Wish& wish, std::vector<BlockRange>& arrived, std::vector<Command>& out);
  void populate(BlockRange blocks, std::vector<Command>& out);
  void protect(BlockRange blocks, const Asker& by);
  bool make_room(std::vector<Command>& out);
  bool victims_leave() const;
  Bytes wanted(bool with_begun) const;
  bool awaits_victims(std::vector<Command>& out);
  bool make_room_by_tensors(std::vector<Command>& out);
  bool room_may_come() const;
  bool evict_tensor(Bytes needed, bool stuck, std::vector<Command>& out);
  void evict_ahead(Bytes needed, std::vector<Command>& out);
  void use_dead(Bytes needed, std::vector<Command>& out);
  void evict_idle(Bytes needed, std::vector<Command>& out);
  void park_next_victims(std::vector<Command>& out);
  bool send_away(BlockId victim, Urgency urgency, std::vector<Command>& out);
  // True if a victim left or was dropped; if none can and we are `stuck`, that is the end.
  bool evict_one(Bytes needed, const Asker& by, bool stuck, std::vector<Command>& out);
  void leave(BlockId victim, Tier to, const Asker& by, std::vector<Command>& out);
  std::optional<BlockId> spare_victim();
  std::optional<BlockId> next_victim();
  std::optional<BlockId> planned_victim();
  bool is_next_planned(BlockId block, Tier to) const;
  std::optional<Tier> victim_tier(BlockId victim, std::vector<Command>& out);
  bool drop_copies(Tier tier, Bytes needed, std::vector<Command>& out);
  void drop_copy(BlockId block, std::vector<Command>& out);
  void drop_ready_frames(std::vector<Command>& out);
  bool serve_expected(std::vector<BlockRange>& arrived, std::vector<Command>& out);
  void serve_planned_evictions(Tier to, std::vector<Command>& out);
  void serve_planned_prefetches(Tier from, std::vector<Command>& out);
  struct Start {
    bool continues = false;  // the move before it
    bool keeps_copy = false;
  };
  void start_move(BlockRange blocks, Tier from, Tier to, const Asker& by, Start how, std::vector<Command>& out);
  Flight land(MoveId move);

  PageTable table_;
  MigrationOptions options_;
  Protection protection_;
  std::vector<Wish> urgent_;                  // faults and needs, faults first
  std::deque<Expected> expected_;             // by kernel
  std::set<BlockId> ready_frames_;            // have their frames for that, and nobody lives in them yet
  PerTier<MoveQueue> evictions_;              // by destination
  PerTier<MoveQueue> prefetches_;             // by source
  PerLink<std::uint32_t> planned_in_flight_;  // blocks
  std::vector<Flight> flights_;
  std::vector<Held> held_;
  std::optional<TensorVictims> tensors_;
  PerLink<Bytes> moved_;
  Bytes dropped_clean_;
  PerTier<std::uint32_t> failed_writes_;  // in a row; those under way when one failed count as that one
  PerTier<MoveId> failing_since_;         // the first move after it
  std::optional<Failure> failure_;
  std::optional<Bytes> births_ahead_;
  FollowOptions plan_;
  Foresight foresight_;
  std::uint64_t departures_ = 0;
  std::vector<std::uint64_t> left_at_;  // by block: departures_ when it had left last
  std::optional<std::uint64_t> running_since_;
  bool one_does_not_fit_ = false;
  std::unordered_map<BlockId, Pieces> split_;
  std::set<BlockId> dead_in_pieces_;       // blocks, which may live again meanwhile
  std::unordered_set<BlockId> undropped_;  // pieces that the machine could not drop, until they have been populated
  std::uint64_t last_split_left_at_ = 0;   // as left_at_, of what was split last
  Bytes left_, came_;                      // of pieces, so far
  Bytes left_since_parked_;                // less what the blocks have cost that were parked
  std::uint64_t event_ = 1;
  std::set<BlockId> changed_on_the_way_;  // written to before their arrival was told
  std::uint32_t next_move_ = 0;
};

}  // namespace spillway
