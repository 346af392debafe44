#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"
#include "machines/cuda/copy_stream.h"
#include "machines/cuda/launch_check.h"
#include "machines/cuda/script_streams.h"
#include "machines/real/doorbell.h"
#include "machines/real/inbox.h"
#include "machines/real/stall_clock.h"
#include "machines/real/streams.h"
#include "memory/tier.h"

namespace spillway {

// What a launch touches of the blocks.
struct BlockTouch {
  BlockRange blocks;
  bool writes = true;
};

// Note [Launches]
// A launch may be enqueued when all blocks that it touches are there: mapped, and with the copies that bring their
// bytes enqueued, which its stream waits for. From then on it can run without anything more from us.
//
// The launching threads and the run loop meet in a few words of memory. A thread says that it is inside, looks whether
// its blocks are there, enqueues, writes down which stream uses them, and says that it is outside. The run loop says
// that a block is there no more, and waits until no thread is inside that was inside then. Each writes before it
// looks, so one of them sees the other. After that nobody uses the block any more but what has been enqueued, and what
// takes the block off waits for that on the device.
//
// A thread whose blocks are not all there claims them. Nothing claimed is taken off, so they are there all at once, in
// the end. One thread at a time has claims: it waits for nothing but the run loop, and what all others have enqueued
// ends by itself. So two never wait for each other's blocks.
class LaunchGate {
 public:
  struct Around {  // All outlive the gate.
    Inbox& inbox;
    const Doorbell& bell;
    Streams& threads;
    StallClock& stall;
    const CopyStream& up;
    ScriptStreams& streams;
    const CudaDriver& driver;
    LaunchCheck* check;  // null: the run is not strict
  };
  // `most_claimed`: blocks that the device can hold at a time. Of their bytes only the user is told.
  LaunchGate(const Around& around, std::uint32_t blocks, std::uint32_t most_claimed, Bytes block_bytes);

  // ---- Launching threads.
  // Returns once the launch may be enqueued, and leave() follows as soon as it was. The error says what does not fit,
  // or why nothing is served any more; then nothing is to be enqueued, and leave() is not called.
  Result<> enter(CUstream stream, std::span<const BlockTouch> touches);
  // In strict runs `on_miss` is called if the launch has touched what it was not seen to touch, or failed otherwise.
  using OnMiss = LaunchCheck::OnMiss;
  void leave(CUstream stream, std::span<const BlockTouch> touches, const OnMiss& on_miss = {});
  bool is_strict() const { return around_.check != nullptr; }  // Launches that touch nothing come here, too.
  ScriptStreams& streams() { return around_.streams; }

  // So many launches had to wait for blocks.
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }

  // ---- The run loop.
  // The block's bytes are there once this mark of the stream up is done; 0: they are there, or there are none.
  void put(BlockId block, std::uint64_t mark);
  // It is there no more for who looks from now on. Threads that are inside may have seen it: see are_outside().
  void take_off(BlockId block);
  void put_back(BlockId block) { put(block, arrived_[block.value].load(std::memory_order_relaxed)); }
  bool is_there(BlockId block) const { return there_[block.value].load(std::memory_order_relaxed) != 0; }
  bool is_claimed(BlockId block) const { return claimed_[block.value].load(std::memory_order_seq_cst) != 0; }
  std::uint64_t arrived(BlockId block) const { return arrived_[block.value].load(std::memory_order_relaxed); }
  // Whether something has been launched that may write to the block, since it was called clean.
  bool is_written(BlockId block) const { return written_[block.value].load(std::memory_order_relaxed) != 0; }
  void call_clean(BlockId block) { written_[block.value].store(0, std::memory_order_relaxed); }

  // The threads that are inside now.
  struct Inside {
    std::uint32_t thread;
    std::uint64_t since;
  };
  std::vector<Inside> inside();
  // Forgets those that have gone out meanwhile; true: all. While some are left, the bell is rung when one goes out,
  // until await_nobody().
  bool are_outside(std::vector<Inside>& some);
  void await_nobody() { is_awaited_.store(false, std::memory_order_seq_cst); }
  // Who waits looks again. Once blocks that somebody might wait for have been put.
  void wake();
  // Nothing is served any more.
  void end(std::string why);

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> turns{0};  // odd: inside
  };

  bool are_there(std::span<const BlockTouch> touches) const;
  Result<> claim(std::span<const BlockTouch> touches);
  Result<> let_stream_wait(CUstream stream, std::span<const BlockTouch> touches);
  void go_out(Slot& slot);
  std::optional<Error> ended();

  Around around_;
  std::uint32_t most_claimed_;
  Bytes block_bytes_;
  std::vector<std::atomic<std::uint8_t>> there_, claimed_, written_;
  std::vector<std::atomic<std::uint64_t>> arrived_;
  std::unique_ptr<std::array<Slot, Streams::kMost>> slots_;
  std::atomic<std::uint64_t> held_{0};
  std::atomic<bool> is_awaited_{false};  // the run loop waits until somebody goes out

  Mutex turn_;  // Its owner has claims.
  Mutex mutex_;
  Condition changed_;
  std::uint64_t changes_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::optional<std::string> ended_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
