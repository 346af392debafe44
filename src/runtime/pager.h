#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/units.h"
#include "executor/executor.h"
#include "journal/iteration_ended.h"
#include "journal/journal_file.h"
#include "journal/kernel_names.h"
#include "machines/cpu/children/fork_guard.h"
#include "machines/cpu/cpu_device.h"
#include "machines/real/real_device.h"
#include "memory/tier.h"
#include "runtime/block_traffic.h"
#include "runtime/byte_extent.h"
#include "runtime/memory_figures.h"
#include "runtime/pager_config.h"
#include "runtime/run_loop.h"
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
  static Result<std::unique_ptr<Pager>> start(PagerConfig config);  // The device is a part of RAM.
  static Result<std::unique_ptr<Pager>> start(PagerConfig config, std::unique_ptr<RealDevice> device);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  // 64-byte aligned, contents undefined. The failure says which tier is short by how much. `place`: it shall be there,
  // in what is set apart, if there is room; else it is anywhere.
  Result<void*> allocate(std::size_t bytes, std::optional<std::uint64_t> place = {}, TensorLabel label = {});
  void free(void* memory);
  bool contains(const void* address) const { return machine().contains(address); }
  bool active() const { return !guard_ || !guard_->in_child(); }
  // Whether more was in use at some time than the device holds.
  bool is_short() const { return most_blocks() > device_blocks(); }
  std::uint32_t most_blocks() const { return most_blocks_; }  // in which tensors have lived at a time
  // In a forked child: whether it may touch its parent's tensors.
  bool is_served() const { return guard_ && guard_->is_served(); }

  // The calling thread is a stream; its kernels come one after the other.
  StreamId this_stream() { return machine().streams().of_this_thread(); }
  // A kernel is about to use these bytes (what is not managed is passed over), and has ended. One that has its place in
  // a plan's iteration waits here for all that it uses, if that fits, as do all where an online policy looks ahead.
  // What is absent all the same it faults.
  void kernel_ready(StreamId stream, const NextKernel& kernel, std::span<const ByteExtent> extents);
  void kernel_done(StreamId stream);

  // Places for a plan's tensors, counted as allocate() does; nothing if there are not enough addresses.
  std::optional<BlockRange> set_apart(Bytes bytes);
  // No plan's tensors are put there any more. Waits for nobody.
  void end_apart(BlockRange apart);
  std::uint64_t place_of(const void* memory) const;
  // The plan is followed by kernels that are told of after this; null: none is.
  void adopt(std::shared_ptr<const FollowedPlan> plan);
  // So that all that it stores has its place on the SSD, whose file system is waited for. What has none gives way.
  void make_room_for(const FollowedPlan& plan);
  std::uint32_t device_blocks() const { return machine().device_blocks(); }
  Bytes block_bytes() const { return machine().block_bytes(); }
  // The most so far in which small tensors lived, which no plan moves.
  std::uint32_t small_blocks() const { return small_blocks_; }

  // For the journal.
  void iteration_ended(const IterationEnded& ended);
  // The script is about to end by itself: what is journalled until now is in the file soon.
  void script_ends();
  // Nothing moves from now on, and what waits for memory fails. Of a GPU: what it has been given goes on.
  void end() { loop_.end(); }
  bool has_journal() const { return journal_ != nullptr; }

  std::uint64_t splits() const { return machine().stats().splits(); }
  MemoryFigures stats() const { return figures_of(machine()); }
  // Of this memory so far, whoever lived in it.
  MovedBytes moved(const void* memory, Bytes bytes) const { return traffic_.moved(place_of(memory), bytes); }
  // As measured while the run moves; nothing before it has moved enough.
  std::optional<BytesPerSecond> ssd_read() const { return machine().stats().reads.rate(); }
  std::optional<BytesPerSecond> ssd_write() const { return machine().stats().writes.rate(); }
  // The time up to `now` (CLOCK_MONOTONIC) in which at least one thread waited for a block; cheap.
  Nanos stall(Nanos now) const { return machine().stall().total(now); }

  // The addresses of all tensors, now and later.
  std::span<std::byte> range() const { return {machine().begin(), machine().bytes().value}; }
  // Null where the device is no part of RAM.
  const CpuDevice* cpu() const { return cpu_; }

 private:
  Pager(PagerConfig config, std::unique_ptr<RealDevice> device, CpuDevice* cpu, std::unique_ptr<JournalFile> journal);
  static Result<std::unique_ptr<Pager>> start(PagerConfig config, std::unique_ptr<RealDevice> device, CpuDevice* cpu);
  std::unique_ptr<ForkGuard> guard_forks();
  RealMachine& machine() { return device_->machine(); }
  const RealMachine& machine() const { return std::as_const(*device_).machine(); }
  RealDevice::Tensors tensors() const SPILLWAY_REQUIRES(mutex_) {
    return {heap_.bytes_in_use(), heap_.blocks_in_use()};
  }
  std::optional<UniqueFd> before_fork();
  bool is_time_to_wake();
  void take_ended_apart() SPILLWAY_REQUIRES(mutex_);

  PagerConfig config_;
  std::unique_ptr<RealDevice> device_;
  CpuDevice* cpu_;                        // null where the device is none
  std::unique_ptr<JournalFile> journal_;  // null: there is none
  std::optional<KernelNames> names_;      // in it
  BlockTraffic traffic_;
  // Guards the heap, the order of its messages and what is promised for it; never held while touching managed memory.
  Mutex mutex_;
  TensorHeap heap_ SPILLWAY_GUARDED_BY(mutex_);
  std::atomic<std::uint32_t> most_blocks_{0}, small_blocks_{0};
  Mutex ended_apart_mutex_;  // a leaf that nobody holds while waiting
  std::atomic<bool> some_apart_has_ended_{false};
  std::vector<BlockRange> ended_apart_ SPILLWAY_GUARDED_BY(ended_apart_mutex_);  // the heap does not know it yet
  // By stream, each written by its own thread.
  std::array<std::atomic<bool>, Streams::kMost> running_{};
  std::array<std::uint32_t, Streams::kMost> serials_{};  // of the latest kernel
  std::array<bool, Streams::kMost> end_is_urgent_{};     // the loop is woken when it has ended
  std::atomic<std::uint64_t> woken_at_{0};               // when a kernel last woke the run loop; nanoseconds
  // From its first moment on, another thread's fork uses all above. Null where forked processes see nothing of tensors.
  std::unique_ptr<ForkGuard> guard_;
  RunLoop loop_;
};

}  // namespace spillway
