#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "executor/executor.h"
#include "journal/journalled_executor.h"
#include "machines/cpu/children/fork_guard.h"
#include "machines/cpu/cpu_machine.h"
#include "machines/cpu/spill_file.h"
#include "memory/tier.h"
#include "runtime/block_traffic.h"
#include "runtime/byte_extent.h"
#include "runtime/pager_config.h"
#include "runtime/run_plan.h"
#include "runtime/tensor_heap.h"

namespace spillway {

// Tensor memory whose resident part is bounded. Knows nothing of PyTorch. All calls may be made from any thread of the
// process that started it; only kernel_ready() and script_ends() wait for the run loop, and none may be made while
// holding what a thread needs that faults on managed memory (none of these touch it).
//
// In a forked child everything here is inactive: allocate() fails, free() and the rest do nothing. What it touches of
// its parent's tensors is as it was at the fork (Note [Forked children]).
class Pager {
 public:
  static Result<std::unique_ptr<Pager>> start(PagerConfig config);
  // Whether it could be started here: the budgets, the directory, and the rights and abilities of this kernel, each
  // tried for real and given back. The error says what is missing and the remedy.
  struct Found {
    EvictionMethod method;  // that it would use
    Bytes ssd;              // that it could
  };
  static Result<Found> check(const PagerConfig& config);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  // 64-byte aligned, contents undefined. The failure says which tier is short by how much. `place`: it shall be there,
  // in what is set apart, if there is room; else it is anywhere.
  Result<void*> allocate(std::size_t bytes, std::optional<std::uint64_t> place = {}, TensorLabel label = {});
  void free(void* memory);
  bool contains(const void* address) const { return machine_->range().contains(address); }
  bool active() const { return !guard_->in_child(); }
  // Whether more was in use at some time than the device holds.
  bool is_short() const { return memory_is_short_.load(std::memory_order_relaxed); }
  // In a forked child: whether it may touch its parent's tensors.
  bool is_served() const { return guard_->is_served(); }

  // The calling thread is a stream; its kernels come one after the other.
  StreamId this_stream() { return machine_->streams().of_this_thread(); }
  // A kernel is about to use these bytes (what is not managed is passed over), and has ended. One that has its place in
  // a plan's iteration waits here for all that it uses, if that fits, as do all where an online policy looks ahead.
  // What is absent all the same it faults.
  void kernel_ready(StreamId stream, const NextKernel& kernel, std::span<const ByteExtent> extents);
  void kernel_done(StreamId stream);

  // Places for a plan's tensors, counted as allocate() does; nothing if there are not enough addresses.
  std::optional<BlockRange> set_apart(Bytes bytes);
  // No plan's tensors are put there any more.
  void give_up(BlockRange apart);
  std::uint64_t place_of(const void* memory) const;
  // The plan is followed from the next kernel on that the run loop hears of. One without kernels: none is followed any
  // more.
  void adopt(std::shared_ptr<const RunPlan> plan);
  std::uint32_t device_blocks() const { return machine_->device_blocks(); }
  std::uint32_t small_blocks();  // the most so far in which small tensors lived, which no plan moves

  // The script is about to end by itself: what is journalled until now is in the file soon.
  void script_ends();
  bool has_journal() const { return journal_ != nullptr; }

  PagerStats stats() const;
  // Of this memory so far, whoever lived in it.
  MovedBytes moved(const void* memory, Bytes bytes) const { return traffic_.moved(place_of(memory), bytes); }
  EvictionMethod eviction_method() const { return method_; }  // the one chosen
  // As measured while the run moves; nothing before it has moved enough.
  std::optional<BytesPerSecond> ssd_read() const { return machine_->stats().reads.rate(); }
  std::optional<BytesPerSecond> ssd_write() const { return machine_->stats().writes.rate(); }
  // The time up to `now` (CLOCK_MONOTONIC) in which at least one thread waited for a block; cheap.
  Nanos stall(Nanos now) const { return machine_->stall().total(now); }

  const MemoryRange& range() const { return machine_->range(); }  // the addresses of all tensors, now and later
  // For tests: where else frames can be.
  const MemoryRange& staging() const { return machine_->staging(); }

 private:
  Pager(PagerConfig config, EvictionMethod method, std::unique_ptr<SpillFile> file, std::unique_ptr<CpuMachine> machine,
        std::unique_ptr<JournalFile> journal);
  void run() noexcept;
  void fail_for_good(const std::string& message) noexcept;
  std::string explain(const Failure& failure) const;
  Result<> reserve(std::uint32_t blocks, Bytes wanted);
  std::unexpected<Error> no_room(Bytes wanted, std::string_view reason) const;
  void reserve_for_copies();
  std::uint64_t slots_needed(std::uint64_t blocks) const;
  std::optional<UniqueFd> before_fork();
  std::uint32_t slots_for_children();
  void follow_new_plan(JournalledExecutor& executor);
  bool is_time_to_wake();
  bool needs_frames(const NextKernel& kernel) const;

  PagerConfig config_;
  EvictionMethod method_;
  std::unique_ptr<SpillFile> file_;
  std::unique_ptr<CpuMachine> machine_;
  std::unique_ptr<JournalFile> journal_;  // null: there is none
  BlockTraffic traffic_;
  std::mutex mutex_;  // guards the heap and the order of its messages; never held while touching managed memory
  TensorHeap heap_;
  std::uint32_t slots_for_children_ = 0;  // of the spill file, beyond those for tensors
  std::uint32_t most_blocks_ = 0;         // that tensors have lived in at a time
  // By stream, each written by its own thread.
  std::array<std::atomic<bool>, Streams::kMost> running_{};
  std::array<std::uint32_t, Streams::kMost> readied_{};
  std::array<bool, Streams::kMost> end_is_urgent_{};
  std::atomic<bool> memory_is_short_{false};
  std::atomic<std::uint64_t> woken_at_{0};  // when a kernel last woke the run loop; nanoseconds
  std::mutex plan_mutex_;                   // guards the next
  std::shared_ptr<const RunPlan> adopted_;  // not followed yet
  std::atomic<bool> adopted_is_new_{false};
  std::shared_ptr<const RunPlan> followed_;  // the run loop's
  std::unique_ptr<ForkGuard> guard_;         // From its first moment on, another thread's fork uses all above.
  std::thread thread_;
};

}  // namespace spillway
