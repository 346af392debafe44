#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>

#include "base/unique_fd.h"
#include "machines/cpu/children/fork_gate.h"
#include "machines/cpu/children/forked_children.h"
#include "machines/cpu/children/kept_blocks.h"
#include "machines/real/block_io.h"
#include "machines/real/inbox.h"
#include "machines/real/machine_stats.h"
#include "machines/real/memory_range.h"

namespace spillway {

// Note [Forked children]
// Managed memory is left out of forks (MemoryRange). A child maps the range anew, watches it with a userfaultfd of its
// own and sends that to us: its faults are served by copies, which are its own memory. It sees the blocks as they were
// at the fork (see Note [Snapshots]): they are write-protected then, and kept before anything maps a writable one or
// drops one (see Note [Keeping blocks]). Sharing pages instead (UFFD_FEATURE_EVENT_FORK) would take CAP_SYS_PTRACE,
// keep shared pages from being moved, and show the child what its parent writes.
//
// A fault whose bytes are on the SSD is answered when they have been read. Meanwhile the slot may have come to hold
// other bytes, for what the child wants was lost or the child has ended. So it is looked again where they are: bytes
// that were read elsewhere are not given to it.
//
// All that the machine has to do with its children. Used by the run loop only, but for what says otherwise.
class ChildServer {
 public:
  static constexpr std::uint32_t kMostReads = 16;  // under way at a time
  static constexpr std::uint32_t kMostTransfers = KeptBlocks::kMostWrites + kMostReads;
  static constexpr std::uint32_t kBufferBlocks = KeptBlocks::kMostWrites + 1;  // the last one for reads
  // A child gets so much at once: it pays for every page that it never asked for with memory of its own.
  static constexpr std::size_t kPartBytes = 64 << 10;
  static_assert(kMostReads * kPartBytes <= kBlockBytes.value);

  // The machine's own, and outlive this. The range's blocks are numbered from 0 on, and our transfers from there on.
  struct Surroundings {
    const MemoryRange& range;
    Inbox& inbox;
    MachineStats& stats;
    const std::function<void(std::string_view)>& on_child_ended;
  };
  ChildServer(Surroundings machine, KeptBlocks::Port port, ForkedChildren children, MemoryRange buffers);

  // Called by the thread that is about to fork, and by it when it has: children that ask to be served through the
  // other end of the socket see memory as it is now. Returns how many slots of the spill file might have to be kept for
  // all children; nothing if this one would not be served.
  std::optional<std::uint32_t> begin_fork(UniqueFd socket);
  void fork_is_over() { gate_.over(); }
  // In the child: whether it will be served. Closes what the parent has for its other children.
  bool enter_child();
  // So many slots are theirs, beyond those that blocks may need. Who asks for what was lost is ended. Any thread.
  void allow(std::uint32_t slots) { kept_.allow(slots); }
  bool is_serving() const { return is_serving_.load(std::memory_order_acquire); }  // any thread

  int fd() const { return children_.fd(); }  // readable when collect() has something to do
  bool has_forked() const { return has_forked_; }
  // All that the thread which forks has told before has been taken in by now.
  void take_snapshot(ForkGate::Ticket fork, UniqueFd socket);
  void collect();

  bool wants(BlockId id) const { return kept_.wants(id); }
  [[nodiscard]] bool keep(BlockId id) { return kept_.keep(id); }
  void take_frame(BlockId id, std::byte* frame) { kept_.take_frame(id, frame); }
  void lose(BlockId id) { kept_.lose(id); }
  std::uint32_t slots() const { return kept_.slots(); }

  // Somebody has taken the slot, which will hold other bytes.
  void slot_is_taken(std::uint32_t slot);
  void ended(const Completion& completion);  // of a transfer of ours
  bool is_keeping() const { return kept_.under_way() > 0; }
  std::size_t under_way() const;

 private:
  struct Fault {
    ChildId child;
    std::byte* address;
  };
  struct Read {
    Fault fault;
    std::uint32_t slot;
    bool is_stale = false;  // The slot may hold other bytes by now.
  };
  void serve(const Fault& fault);
  void start_read(const Read& read);
  void finish_read(std::uint32_t number, int error);
  void give(const ForkedChildren::Child& child, std::byte* address, const std::byte* bytes);
  void end(const ForkedChildren::Child& child, std::string_view why);
  void let_go(SnapshotId snapshot);
  void drop_ended();
  bool may_read() const;
  BlockId block_of(const Fault& fault) const { return {machine_.range.index_of(fault.address)}; }
  std::byte* buffer_of(std::uint32_t read) const { return buffers_.block(KeptBlocks::kMostWrites) + read * kPartBytes; }

  Surroundings machine_;
  std::function<void(const Transfer&)> start_;
  ForkedChildren children_;
  MemoryRange buffers_;  // untouched as long as nothing is kept or read
  KeptBlocks kept_;
  std::array<std::optional<Read>, kMostReads> reads_;
  std::deque<Fault> waiting_;       // until one of these may start
  std::uint64_t kept_at_look_ = 0;  // so much when it was last looked whether children are there
  bool has_forked_ = false;
  ForkGate gate_;
  std::atomic<bool> is_serving_{false};
  std::atomic<std::uint32_t> could_want_{0};
};

}  // namespace spillway
