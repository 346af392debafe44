#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "executor/machine.h"
#include "machines/cpu/block_mapper.h"
#include "machines/cpu/children/child_server.h"
#include "machines/cpu/content_hash.h"
#include "machines/cpu/eviction_method.h"
#include "machines/cpu/fault_queue.h"
#include "machines/cpu/fault_reader.h"
#include "machines/real/block_io.h"
#include "machines/real/memory_range.h"
#include "machines/real/real_machine.h"
#include "machines/real/spill_file.h"
#include "machines/real/transfer_queue.h"
#include "memory/block_state.h"
#include "memory/pieces.h"

namespace spillway {

struct CpuMachineOptions {
  std::uint32_t device_frames = 0;  // the whole budget, in blocks
  std::uint32_t host_frames = 0;
  std::uint32_t range_blocks = 0;  // addresses to hand out
  EvictionMethod method = EvictionMethod::move;
  int closed_after_file = -1;  // a descriptor that stays open as long as the spill file, even if the process is killed
  // How long a thread may wait for room while nothing at all moves, before the machine says that it never will.
  Nanos patience{60'000'000'000};
  // Ends the process when faults can no longer be read; called on a thread that must not allocate. By default the
  // message goes to stderr, and the status is 1.
  std::function<void(std::string_view)> on_failure = end_process;
  // Hears on the run loop's thread why a forked process had to be ended.
  std::function<void(std::string_view)> on_child_ended = {};
  // Stands between the machine and the file: what watches transfers, or makes them fail.
  std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)> around_io = {};
};

// The device is a bounded part of RAM: blocks of one managed range are mapped or not, and touching one that is not is a
// real page fault. It obeys the executor and never decides.
//
// submit() and wait() belong to one thread, the run loop; it may allocate, but must never touch the managed range or
// take a lock that a thread of the script could hold while it faults. All const calls and inbox() are for any thread.
//
// Note [A dead block that lives again]
// Messages take their time: a block whose tensor has died may have been given to a new one and written to before the
// executor hears of either. So whenever the machine takes a block off it looks whether an allocation there has been
// posted of which it has not told; if so, the block goes back.
// - An eviction is refused. Were it done, the news of the death would throw away the new tensor's bytes below.
// - The drop of a dead block is not done: its frame stays taken, although the executor believes it free. Once the
//   allocation has been told, the machine reports a fault on the block; the executor answers with room and a Populate,
//   which then has nothing left to do. Whatever needs a frame in between waits here, so the budget always holds. The
//   same happens to a dead block that cannot be taken off because its pages are locked.
// - The drop of a piece that is not done is told before anything else: the block must not become whole meanwhile.
// - What waits must not stand in the way of that room: all frames could be those of such blocks, and nothing could move
//   any more. A block that waits for its first frame is blank: it has no bytes, so it leaves at once wherever it is to
//   go, and gets a frame without contents when it comes back. An arrival that waits while nothing moves is refused.
//
// Note [Clean copies]
// A block that comes back with its copy kept (Move::clean) keeps its slot of the spill file, and a hash of the bytes
// that came, taken before anybody can touch them, and good as long as nothing else is written to the slot. When it
// leaves as clean it is taken off first, so that nobody can write to it any more, and hashed again: only if both are
// equal the copy is what is stored, else it is written over.
// Kernels tell what they write, but not what a script writes through numpy or a raw pointer, nor when; write protection
// would not outlast UFFDIO_MOVE. What a kernel makes it writes without a word, too: a block that comes while such a one
// runs may well have changed, and is not counted as an unseen write. A copy whose slot something else needs, when no
// other is free, is gone without a word: a clean move of such a block is one like any other.
//
// Note [Planned transfers]
// What is urgent goes first here, but a disk serves what it has been given in its own order: a block that a kernel
// waits for comes after all that is under way. A few blocks of 2 MiB keep a disk as busy as many do, so no more planned
// ones are given to it at a time (UnderWay).
class CpuMachine final : public RealMachine {
 public:
  // The spill file outlives the machine.
  static Result<std::unique_ptr<CpuMachine>> make(const CpuMachineOptions& options, SpillFile& file);
  ~CpuMachine() override;

  void submit(std::span<const Command> commands) override;
  // Fails with Errc::unavailable after stop(); any other failure is the end of what can be served.
  Result<Stamped> wait() override;

  bool has_events() const override { return !answers_.empty() || !faults_.empty() || has_messages(); }
  // For the few faults that the run loop may have itself.
  void run_loop_is(pid_t thread) override { reader_->run_loop_is(thread); }

  std::byte* begin() const override { return range_.begin(); }
  std::uint32_t device_blocks() const override { return mapper_->device_blocks(); }
  bool are_there(BlockRange blocks) const override;
  bool copies_to_host() const override { return false; }
  bool has_pieces() const override { return true; }
  const MemoryRange& range() const { return range_; }
  const MemoryRange& staging() const { return mapper_->staging(); }
  ChildServer& children() { return children_; }
  // Whether a touch would not fault now. Any thread; it may have changed when the caller looks.
  bool is_mapped(BlockId block) const {
    return is_piece(block) ? at(block).is_mapped : mapped_[block.value].load(std::memory_order_relaxed);
  }
  std::vector<int> descriptors() const;  // all that a forked child should close

  // CHECKs that what is counted as in use is what blocks and moves hold; O(blocks). For the run loop of tests.
  void check_invariants() const;

 private:
  // Of a piece, too, but for what is marked: that is the block's alone.
  struct Block {
    BlockState state = BlockState::empty;
    Tier lower = Tier::device;
    bool blank = false;    // has had no frame since it was populated; resident ones wait for theirs
    bool awaited = false;  // somebody has faulted on it since it was mapped last
    bool kept = false;     // see Note [A dead block that lives again]
    bool kept_reported = false;
    std::uint32_t kept_tries = 0;
    std::uint32_t transferring = 0;     // with so many blocks, this one included, from this one on
    bool has_slot = false;              // the block's
    std::uint32_t slot = 0;             // the block's
    std::optional<ContentHash> stored;  // of what is in the slot, once it has been needed
    bool was_in_the_making = false;     // when it came with its copy kept
    bool is_mapped = false;             // a piece's
    std::uint32_t job = 0;              // the move that it is part of
    std::byte* buffer = nullptr;        // where its bytes are while they are off the block, or in a host frame
  };
  struct Job {
    Move move;
    std::uint32_t rest = 0;     // transfers that have not ended
    std::uint32_t off = 0;      // evictions: so many blocks, from the first, were taken off
    std::uint32_t settled = 0;  // so many blocks, from the first, have arrived, or are back
    std::uint32_t chunk = 0;    // arrivals: and so many after them are being read
    std::uint32_t dropped = 0;  // blocks that need not be written
    std::uint32_t blank = 0;    // blocks that have nothing to move
    std::uint32_t retries = 0;  // of a chunk that could not be read
    int error = 0;
    int refusal = 0;  // an errno: the blocks cannot leave
    bool has_frames = false;
    bool cancelled = false;
    bool is_returning = false;
  };

  CpuMachine(const CpuMachineOptions& options, SpillFile& file, Doorbell bell, Userfault userfault, MemoryRange range,
             ForkedChildren children, MemoryRange buffers_for_children);

  void handle(const Launch& command);
  void handle(const Move& command);
  void handle(const Populate& command);
  void handle(const Discard& command);
  void handle(const Cancel& command);
  // Pieces (cpu_pieces.cpp).
  void handle(const Split& command);
  void handle(const Join& command);
  void handle(const Park& command);
  void handle(const Timer&);
  bool end_pieces(BlockId id);
  bool copy_pieces_to(std::uint32_t slot, BlockId id);
  void note_mapped(BlockId id, bool is_mapped);
  void look_again(BlockId id);

  // Evictions (cpu_evictions.cpp).
  void begin_eviction(Job& job);
  int take_all_off(Job& job);
  int take_off(BlockId id);
  bool lives_again(BlockId id);
  bool put_back(BlockId id);
  bool put_back(Job& job);
  void come_back(Job& job);
  bool end_return(Job& job);
  bool has_current_copy(BlockId id);
  std::optional<std::uint32_t> take_slot();
  std::uint32_t take_slot_of_copy();
  void start_writes();
  void send_back_writes();
  void finish_write(Job& job);
  bool try_discard(BlockId id);
  void free_host_frame(std::byte* frame);
  void settle_kept();
  void refuse_arrival();

  // Arrivals (cpu_arrivals.cpp).
  void populate_waiting();
  bool give_first_frame(BlockId id);
  void begin_arrival(Job& job);
  bool take_frames(Job& job);
  bool map_from_host(Job& job);
  void start_reads();
  void start_transfer(TransferQueue& queue, bool write);
  bool start_chunk(Job& job);
  void finish_chunk(Job& job);

  // Forked children (cpu_children.cpp).
  KeptBlocks::Port port_for_children();
  KeptBlocks::Found protect_for_children(BlockId id);
  KeptBlocks::Place place_of(BlockId id) const;
  bool keep_for_children(BlockId id);
  bool let_write(BlockId id);
  void let_writers_go_on();

  void pump();
  void transfer_ended(const Completion& completion);
  void answer(const Job& job, bool done);
  void refuse(const Job& job);
  void refused(int error);
  void give_back_slot(BlockId id);
  void note_usage();
  bool waits_for_room() const;
  // Something is under way that may make room when it has ended.
  bool is_moving() const { return writing_.count() + reading_.count() > 0 || children_.is_keeping(); }
  void limit_waiting();
  void fail_for_good(const char* what, int error);
  void mapped(BlockId id);
  Bytes device_bytes() const { return kBlockBytes * mapper_->device_blocks(); }
  bool has_room(Bytes bytes) const { return device_in_use_ + bytes <= device_bytes(); }

  // Events (cpu_machine.cpp).
  std::optional<Event> next_event();
  void forks(std::uint32_t fork, UniqueFd socket) override;
  BlockId touched(const std::byte* address) const;
  std::optional<Event> tell_fault(const FaultQueue::Entry& entry);
  void collect();

  const Block& at(BlockId id) const {
    CHECK(block_of(id).value < blocks_.size());
    return is_piece(id) ? (*pieces_.at(block_of(id)))[place_in_block(id)] : blocks_[id.value];
  }
  Block& at(BlockId id) { return const_cast<Block&>(std::as_const(*this).at(id)); }
  // What has its slot.
  Block& home(BlockId id) { return at(block_of(id)); }
  bool holds_frame(const Block& block) const;
  static bool is_parked(const Block& block) { return block.state == BlockState::resident && block.buffer != nullptr; }
  static std::size_t size(BlockId id) { return is_piece(id) ? kPieceBytes.value : kBlockBytes.value; }
  static Bytes bytes_of(BlockRange blocks) { return Bytes{size(blocks.first)} * blocks.count; }
  std::size_t offset_in_block(BlockId id) const { return is_piece(id) ? place_in_block(id) * kPieceBytes.value : 0; }
  std::byte* address(BlockId id) const { return range_.block(block_of(id).value) + offset_in_block(id); }

  CpuMachineOptions options_;
  SpillFile& file_;
  Userfault userfault_;
  MemoryRange range_;
  std::unique_ptr<BlockMapper> mapper_;
  int ring_descriptor_ = -1;
  std::unique_ptr<BlockIo> io_;
  FaultQueue fault_queue_;
  std::unique_ptr<FaultReader> reader_;

  using Pieces = std::array<Block, kPiecesPerBlock>;
  std::vector<Block> blocks_;
  std::unordered_map<BlockId, std::unique_ptr<Pieces>> pieces_;  // of split blocks
  std::unique_ptr<std::atomic<bool>[]> mapped_;
  std::unordered_map<std::uint32_t, Job> jobs_;
  TransferQueue writes_, reads_;
  TransferQueue chunks_;  // reads that have their buffers, and whose turn has not come
  UnderWay writing_, reading_;
  std::deque<BlockId> awaiting_frame_;      // resident and blank
  std::deque<std::uint32_t> awaiting_map_;  // jobs from host to device that wait for frames, or until blocks are kept
  std::deque<std::uint32_t> returning_;     // jobs whose blocks come back when they are kept
  std::deque<BlockId> awaiting_write_;      // somebody writes to them when they are kept
  std::vector<BlockId> kept_;
  std::set<BlockId> copies_;       // what is on the device, and has a slot, too
  Bytes device_in_use_;            // in frames: mapped, leaving and arriving
  std::uint32_t host_in_use_ = 0;  // frames
  std::uint32_t ssd_in_use_ = 0;

  ChildServer children_;

  std::deque<FaultQueue::Entry> faults_;
  std::deque<Event> answers_;
  std::vector<Event> delayed_;  // answers that must not be told before others had their turn
  bool delayed_are_waited_for_ = false;
  std::optional<Nanos> waited_;    // so long for room, and nothing has moved meanwhile
  Nanos last_look_;                // at that
  int last_refusal_ = 0;           // why a block could not be taken off; an errno; 0: none since something moved
  std::optional<Error> no_space_;  // why the SSD gave no more for blocks in pieces, when asked last
  Nanos asked_for_space_;
  std::vector<Completion> ended_;
  std::optional<Error> failure_;
};

}  // namespace spillway
