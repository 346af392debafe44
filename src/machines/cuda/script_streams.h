#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"
#include "machines/cuda/driver.h"
#include "machines/cuda/freed_memory.h"
#include "memory/tier.h"

namespace spillway {

// Which of the script's streams have been given what may still use a block. Launches on a stream are counted, and each
// block knows the latest of each stream that touches it.
class ScriptStreams {
 public:
  static constexpr std::uint32_t kMost = 256;

  // The GPU's context.
  ScriptStreams(const CudaDriver& driver, CUcontext context, std::uint32_t blocks)
      : driver_(driver), context_(context), blocks_(blocks) {}
  ~ScriptStreams();
  ScriptStreams(const ScriptStreams&) = delete;
  ScriptStreams& operator=(const ScriptStreams&) = delete;

  // ---- Any thread.
  // Numbered as they appear; a number stays its stream's, until that has ended and is done. Errc::unavailable where
  // there are more than kMost at a time.
  Result<std::uint32_t> number_of(CUstream stream);
  // Something that uses these blocks has been enqueued there.
  std::uint64_t enqueued(std::uint32_t stream) { return all_[stream].load()->launches.fetch_add(1) + 1; }
  void uses(std::uint32_t stream, std::uint64_t launch, BlockRange blocks);
  // The script lets it wait for others. That counts like a launch: what waits for all of the stream waits for them,
  // too.
  void waits(CUstream handle);
  // The script is about to destroy it: another one may get its handle.
  Result<> ends(CUstream handle);

  using Use = StreamUse;
  // All that has been enqueued there so far.
  Use all_of(std::uint32_t stream) const { return {stream, all_[stream].load()->launches.load()}; }
  // Another stream may have to wait for that, and then for nothing that comes later. Only a hint.
  void mark(Use use);
  // What that stream is given from now on comes after these, on the device; where they were not marked, after what else
  // has been enqueued there by now, too.
  Result<> let_wait(CUstream handle, std::span<const Use> uses);

  // ---- The run loop.
  // Appends what uses the block and is not known to be done.
  void find_uses(BlockId block, std::vector<Use>& uses) const;
  // An event that is done when this use is, or later. It is not done. Null: none can be recorded now, since a graph is
  // being captured there.
  Result<CUevent> event_after(Use use);
  // Looks what has been done meanwhile.
  Result<> poll();
  bool is_done(Use use) const { return use.launch <= all_[use.stream].load()->done.load(std::memory_order_relaxed); }
  // Until all that the script has enqueued is done.
  void wait_for_all();
  bool is_awaited() const { return awaited_ > 0; }  // Some event that was asked for is not done.

 private:
  struct Recording {
    std::uint64_t launch;  // all up to this one are before the event
    CUevent event;
  };
  struct Stream {
    Stream(CUstream of, std::uint32_t blocks) : handle(of), latest(blocks) {}
    std::atomic<CUstream> handle;
    std::atomic<bool> has_ended{false};
    CUevent end = nullptr;   // written before, under the mutex; the run loop's
    CUevent last = nullptr;  // the same, for those who wait
    std::atomic<std::uint64_t> launches{0};
    std::vector<std::atomic<std::uint64_t>> latest;  // by block: the launch that used it last
    std::atomic<std::uint64_t> done{0};              // the run loop writes it
    std::deque<Recording> recorded;                  // the run loop's; not done yet
    std::deque<Recording> marks;                     // for those who wait, under the mutex
    std::uint64_t marked_done = 0;                   // up to this one they are done, and gone
  };

  bool take_over(Stream& stream, CUstream handle);
  void forget_done(Stream& stream);
  bool is_captured(const Stream& stream) const;
  Result<bool> record(CUevent event, const Stream& stream) const;
  std::uint32_t find(CUstream handle, std::uint32_t from, std::uint32_t count) const;

  const CudaDriver& driver_;
  CUcontext context_;
  std::uint32_t blocks_;
  Mutex mutex_;  // Whoever adds or ends one, or records an event there.
  std::atomic<std::uint32_t> count_{0};
  std::array<std::atomic<Stream*>, kMost> all_{};
  std::vector<CUevent> free_events_;   // the run loop's
  std::vector<CUevent> spare_events_;  // for marks, under the mutex
  std::size_t awaited_ = 0;
};

}  // namespace spillway
