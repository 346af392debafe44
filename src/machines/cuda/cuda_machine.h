#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/machine.h"
#include "machines/cuda/copy_stream.h"
#include "machines/cuda/device_memory.h"
#include "machines/cuda/driver.h"
#include "machines/cuda/launch_check.h"
#include "machines/cuda/launch_gate.h"
#include "machines/cuda/pinned_memory.h"
#include "machines/cuda/script_streams.h"
#include "machines/real/block_io.h"
#include "machines/real/disk_wait.h"
#include "machines/real/real_machine.h"
#include "machines/real/spill_file.h"
#include "machines/real/transfer_queue.h"
#include "memory/block_state.h"

namespace spillway {

struct CudaMachineOptions {
  int device = 0;                   // its ordinal
  std::uint32_t device_frames = 0;  // the whole budget, in blocks
  std::uint32_t host_slots = 0;     // of pinned host memory, in blocks
  std::uint32_t range_blocks = 0;   // addresses to hand out
  Bytes block_bytes = kBlockBytes;  // a multiple of what the GPU maps
  // Pinned blocks through which those go that the SSD has.
  std::uint32_t staging_slots = 64;
  bool strict = false;              // Note [Strict runs]
  DiskWaits* disk_waits = nullptr;  // see RealDeviceConfig
  // Is told once why less is pinned than the budget says.
  std::function<void(const std::string&)> on_shortage = {};
  int closed_after_file = -1;  // a descriptor that stays open as long as the spill file
  // See CpuMachineOptions.
  std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)> around_io = {};
};

// A GPU's memory is the device, pinned host memory and a file on the SSD are below it. Pointers never change: a block
// keeps its address, and physical memory is mapped there while it is on the device. It obeys the executor and never
// decides.
//
// Kernels run long after the script has asked for them. The executor lives in the time of asking: a kernel is done for
// it when all of it has been enqueued, and a block that arrives is there when its copy has been enqueued. What runs
// later is put in order on the device, by events: a launch after the copies up that it needs, a copy down after the
// launches that use the block (Note [Launches]).
//
// submit() and wait() belong to one thread, the run loop, which needs the GPU's context to be current. All const calls,
// gate() and inbox() are for any thread.
class CudaMachine final : public RealMachine {
 public:
  // Driver and file outlive it.
  static Result<std::unique_ptr<CudaMachine>> make(const CudaDriver& driver, const CudaMachineOptions& options,
                                                   SpillFile& file);
  ~CudaMachine() override;
  CudaMachine(const CudaMachine&) = delete;
  CudaMachine& operator=(const CudaMachine&) = delete;

  void submit(std::span<const Command> commands) override;
  Result<Stamped> wait() override;

  void stop() override;
  bool has_events() const override { return !answers_.empty() || has_messages(); }

  std::byte* begin() const override { return reinterpret_cast<std::byte*>(memory_->begin()); }
  std::uint32_t device_blocks() const override { return options_.device_frames; }
  std::uint32_t host_blocks_missing() const override { return host_blocks_missing_.load(std::memory_order_acquire); }
  std::uint32_t most_in_move() const override { return options_.staging_slots; }  // It goes through them at once.
  bool are_there(BlockRange blocks) const override;
  bool has_pieces() const override { return false; }
  bool copies_to_host() const override { return true; }
  // What it has done so far. For the run loop.
  struct Activity {
    std::uint64_t held_launches = 0, mappings = 0;
    Nanos mapping;  // the time that mappings took
    Bytes pinned;
    std::uint64_t checked_launches = 0;
  };
  Activity activity() const {
    return {gate_.held(), memory_->mappings(), memory_->mapping(), host_.pinned() + staging_.pinned(),
            check_ ? check_->checked() : 0};
  }
  LaunchGate& gate() { return gate_; }
  const CudaDriver& driver() const { return driver_; }
  CUcontext context() const { return context_; }
  CUdeviceptr address(BlockId block) const { return memory_->address(block); }

  // CHECKs that what is counted as in use is what blocks and moves hold; O(blocks). For the run loop of tests.
  void check_invariants() const;

 private:
  struct Block {
    BlockState state = BlockState::empty;  // never clean or in pieces
    bool blank = false;                    // has had no frame since it was populated; resident ones wait for theirs
    bool kept = false;                     // dead, dropped by the executor, and still with its frame
    bool kept_reported = false;
    Tier lower = Tier::device;  // of a stored, leaving or arriving one
    std::byte* slot = nullptr;  // in pinned host memory
    std::optional<std::uint32_t> file_slot;
    std::byte* staging = nullptr;  // on its way from or to the file
    bool is_copied = false;        // on its way down: to below, where the bytes are not yet
    std::uint64_t down = 0;        // the mark of its latest copy down, whatever came of it
    std::uint32_t job = 0;         // the move that it is part of
  };
  // A move, or a dead block on its way off the device.
  struct Job {
    enum class Step : std::uint8_t {
      launches,   // down: until nobody is inside who may have seen the blocks
      frames,     // up: until there are frames
      buffers,    // until there is pinned memory
      copies,     // down: until they are done, and all that uses the blocks
      transfers,  // from or to the file
    };
    Move move{};
    Step step = Step::launches;
    std::vector<LaunchGate::Inside> inside;
    std::vector<ScriptStreams::Use> uses;
    std::uint64_t down = 0, up = 0;  // marks of the two streams that it waits for
    std::uint32_t rest = 0;          // transfers that have not ended
    std::uint32_t dropped = 0, blank = 0;
    int error = 0;
    bool cancelled = false;
  };
  // Pinned memory that copies still use: free once both marks are done.
  struct Lent {
    std::uint64_t up, down;
    PinnedMemory* pool;
    std::byte* slot;
  };

  CudaMachine(const CudaDriver& driver, const CudaMachineOptions& options, SpillFile& file, Doorbell bell,
              CUcontext context, std::unique_ptr<DeviceMemory> memory, std::unique_ptr<CopyStream> up,
              std::unique_ptr<CopyStream> down);

  void handle(const Launch& command);
  void handle(const Move& command);
  void handle(const Populate& command);
  void handle(const Discard& command);
  void handle(const Cancel& command);
  void handle(const Split&);
  void handle(const Join&);
  void handle(const Timer&);
  void handle(const Park&) {}  // What a launch touches is told.

  // Down (cuda_evictions.cpp). Steps return true once they are over.
  void begin_eviction(Job& job);
  bool step_down(Job& job);
  bool take_buffers(Job& job);
  bool makes_up_for_shortage();
  bool start_copies(Job& job);
  bool has_left(Job& job);
  void come_back(Job& job, bool at_once);
  bool has_copy(const Job& job, BlockId id) const;
  void find_uses(BlockId id, Job& job);
  bool has_events(const Job& job);
  bool are_done(const Job& job) const;
  void begin_drop(BlockId id);
  bool step_drop(BlockId id, Job& job);
  void give_up(PinnedMemory& pool, std::byte*& slot, std::uint64_t up, std::uint64_t down);
  void forget_copies(BlockId id, std::uint64_t up);
  std::optional<std::uint32_t> take_file_slot();
  void settle_kept();
  void give_up_waiting();
  void refuse_arrival();

  // Up (cuda_arrivals.cpp).
  bool step_up(Job& job);
  bool take_frames(Job& job);
  bool take_staging(const Job& job);
  void start_reads(Job& job);
  bool bring_up(Job& job);
  void fail_to_read(Job& job);
  void populate_waiting();

  void pump();
  void step_all();
  void start_transfers();
  void transfer_ended(const Completion& completion);
  void answer(const Job& job, bool done);
  void fail_for_good(const Error& error);
  bool holds(const Result<>& result);  // False, and a failure for good, where there is an error.
  void poll_device();
  bool is_device_busy() const { return up_->is_busy() || down_->is_busy() || script_streams_.is_awaited(); }
  void note_usage();

  std::optional<Event> next_event();
  Event misses(const Faulted& fault) override;

  Block& at(BlockId id) { return blocks_.at(id.value); }
  const Block& at(BlockId id) const { return blocks_.at(id.value); }

  const CudaDriver& driver_;
  CudaMachineOptions options_;
  SpillFile& file_;
  CUcontext context_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<CopyStream> up_, down_;
  PinnedMemory host_, staging_;
  ScriptStreams script_streams_;
  std::unique_ptr<LaunchCheck> check_;  // null: the run is not strict
  LaunchGate gate_;
  std::unique_ptr<BlockIo> io_;

  std::vector<Block> blocks_;
  std::map<std::uint32_t, Job> jobs_;             // by move: oldest first
  std::unordered_map<std::uint32_t, Job> drops_;  // by block: dead, on their way off the device
  std::deque<BlockId> awaiting_frame_;            // resident and blank
  std::vector<Lent> lent_;
  TransferQueue reads_, writes_;
  UnderWay reading_, writing_;
  std::vector<BlockId> kept_;
  std::set<BlockId> copies_;  // what is on the device, and has a slot in the file, too

  std::deque<Event> answers_;
  std::vector<Event> delayed_;  // answers that must not be told before others had their turn
  std::vector<Completion> ended_;
  std::atomic<std::uint32_t> host_blocks_missing_{0};
  bool waits_for_capture_ = false;  // a step does
  bool has_context_ = false;        // The run loop's thread does.
  Nanos progress_at_;               // when a move was done, or a block got its frame
  std::optional<Error> failure_;
};

}  // namespace spillway
