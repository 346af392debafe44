#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "executor/machine.h"
#include "machines/real/doorbell.h"
#include "machines/real/inbox.h"
#include "machines/real/machine_stats.h"
#include "machines/real/stall_clock.h"
#include "machines/real/streams.h"
#include "memory/tier.h"

namespace spillway {

// A machine beside a script: what runs of all of them share. submit() and wait() belong to one thread, the run loop.
// All else is for any thread.
class RealMachine : public Machine {
 public:
  // Makes wait() fail.
  virtual void stop();
  bool stopped() const { return stop_.load(std::memory_order_acquire); }
  // Returns when wait() has told all that has been posted until now, and was called again; or when patience is over.
  void tell_all(Nanos patience);
  // Which thread calls wait().
  virtual void run_loop_is(pid_t) {}
  // For the run loop: whether wait() would return at once.
  virtual bool has_events() const = 0;

  // The addresses of all tensors, now and later, block beside block.
  virtual std::byte* begin() const = 0;
  std::uint32_t blocks() const { return blocks_; }
  Bytes block_bytes() const { return block_bytes_; }
  Bytes bytes() const { return block_bytes_ * blocks_; }
  bool contains(const void* address) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin());
    return offset < bytes().value;
  }
  // What the device's budget holds.
  virtual std::uint32_t device_blocks() const = 0;
  // So many of its host memory's blocks cannot be had after all.
  virtual std::uint32_t host_blocks_missing() const { return 0; }
  // The most blocks that one move may carry.
  virtual std::uint32_t most_in_move() const { return blocks_; }
  // Whether all of them could be used at once now. It may have changed when the caller looks.
  virtual bool are_there(BlockRange blocks) const = 0;
  // Whether blocks may be split (Note [Pieces]).
  virtual bool has_pieces() const = 0;
  // Whether a block may be on the device and in host memory (a copy was made) or is at one place (its frame went).
  virtual bool copies_to_host() const = 0;

  Inbox& inbox() { return inbox_; }
  Streams& streams() { return streams_; }
  const MachineStats& stats() const { return stats_; }
  // How long before wait() told it the latest event had happened: what nobody waits for is told when the loop wakes.
  Nanos told_late() const { return told_late_; }
  StallClock& stall() { return stall_; }
  const StallClock& stall() const { return stall_; }
  // The serial of the stream's kernel that was launched last, of those that wait: wait on it for one's own.
  std::atomic<std::uint32_t>& launches(StreamId stream) { return launches_[stream.value]; }

 protected:
  RealMachine(Doorbell bell, std::uint32_t blocks, Bytes block_bytes)
      : bell_(std::move(bell)), blocks_(blocks), block_bytes_(block_bytes), inbox_(blocks, bell_), lodgers_(blocks) {}
  void let_go(LaunchId launch);

  // What the script has told, one after the other, as far as it is news to the executor.
  std::optional<Event> next_message();
  // What wait() returns, as of now.
  Stamped stamped(Event event);
  bool has_messages() const { return batch_at_ < batch_.messages.size(); }
  void take_messages();  // those that have come since; all before has been told
  // As told so far: how many tensors live in the block, and whether all that was allocated there has been told.
  std::uint32_t tensors(BlockId block) const { return lodgers_.at(block.value).tensors; }
  bool knows_allocations(BlockId block) const {
    return inbox_.allocations(block) == lodgers_.at(block.value).allocations;
  }
  // As told so far: a kernel runs that has made a tensor in the block, or may have, so it may write there. Kernels tell
  // what they were given, not what they make.
  bool is_in_the_making(BlockId block) const;

  Doorbell bell_;
  std::uint32_t blocks_;
  Bytes block_bytes_;
  Inbox inbox_;
  Streams streams_;
  MachineStats stats_;
  StallClock stall_;

 private:
  struct Lodgers {  // of a block
    std::uint32_t allocations = 0, tensors = 0;
    std::uint64_t made_at = 0;  // allocations_ when a tensor was made there last
  };
  std::optional<Event> tell(const Inbox::Message& message, std::span<const BlockAccess> accesses);
  // A stream waits for blocks that no page fault brings.
  virtual Event misses(const Faulted& fault);
  virtual void forks(std::uint32_t fork, UniqueFd socket);

  std::vector<Lodgers> lodgers_;
  std::optional<Nanos> posted_;  // the message that the latest event is, if it is one
  Nanos last_, told_late_;
  std::uint64_t allocations_ = 0;                             // told so far
  std::unordered_map<std::uint32_t, std::uint64_t> running_;  // by stream with a kernel: allocations_ at its beginning
  Inbox::Batch batch_;
  std::size_t batch_at_ = 0;
  std::counting_semaphore<> told_{0};  // for tell_all()
  std::atomic<bool> stop_{false};
  std::unique_ptr<std::atomic<std::uint32_t>[]> launches_{new std::atomic<std::uint32_t>[Streams::kMost] {}};
};

}  // namespace spillway
