#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "executor/machine.h"
#include "machines/real/doorbell.h"

namespace spillway {

// What the script's threads tell the run loop. Posting is cheap and never waits: the loop is not woken but by faults,
// by what is urgent and when much has piled up, and it reads everything before it serves a fault, so that it always
// knows what the faulting thread had told before.
//
// The mutex is a leaf: whoever holds it touches nothing but the lists here, so nobody faults while holding it.
class Inbox {
 public:
  enum class Kind : std::uint8_t { allocated, freed, adopted, kernel_ready, kernel_done, missing, forking, end };
  struct Message {
    Kind kind;
    LaunchId launch{};
    PlanId plan{};
    KernelId kernel{};
    ExecutionId execution{};
    bool waits = true;
    bool anew = false;
    TensorId tensor{};
    TensorLabel label{};
    BlockRange blocks{};
    int socket = -1;  // to a process that is about to be forked; owned by who takes the message
    std::uint32_t fork = 0;
    std::uint32_t first_access = 0, access_count = 0;
    std::uint32_t adopted = 0;  // which of the plans below
    Nanos at{};                 // when it was posted
  };
  struct Batch {
    std::vector<Message> messages;
    std::vector<BlockAccess> accesses;
    std::vector<std::shared_ptr<const FollowedPlan>> plans;
  };

  Inbox(std::uint32_t blocks, const Doorbell& bell)
      : bell_(bell), allocations_(new std::atomic<std::uint32_t>[blocks] {}) {}

  // Before the tensor's memory is used. The caller keeps allocations and frees of the same blocks in order.
  void allocated(TensorId tensor, BlockRange blocks, TensorLabel label = {});
  void freed(TensorId tensor, BlockRange blocks);
  // Kernels of this plan come after it.
  void adopted(std::shared_ptr<const FollowedPlan> plan);
  // `urgent`: something is to be done at once, so the loop is woken. A kernel that waits is done after its Launch only.
  void kernel_ready(const KernelReady& kernel, bool urgent = false);
  void kernel_done(LaunchId launch, bool urgent = false);
  // The stream waits for these blocks, where no page fault says so; `anew`: see Faulted. The caller rings.
  void missing(StreamId stream, BlockRange blocks, bool anew);

  void forking(std::uint32_t fork, UniqueFd socket);
  void end();  // Somebody waits until all before it has been told.

  // All that has been posted since the last call, in order; the batch's own contents are thrown away.
  void take(Batch& batch);

  // How often a tensor was given memory in this block: it counts before any of its bytes can be written.
  std::uint32_t allocations(BlockId block) const { return allocations_[block.value].load(std::memory_order_seq_cst); }

 private:
  void post(const Message& message, std::span<const BlockAccess> accesses = {}, bool urgent = false);
  bool has_much() const SPILLWAY_REQUIRES(mutex_);

  const Doorbell& bell_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> allocations_;
  Mutex mutex_;
  Batch posted_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
