#include "machines/cuda/script_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "machines/cuda/driver_scope.h"

namespace spillway {

ScriptStreams::~ScriptStreams() {
  for (std::uint32_t stream = 0; stream < count_; ++stream) {
    Stream* const one = all_[stream].load();
    for (const auto* recordings : {&one->recorded, &one->marks})
      for (const Recording& recording : *recordings) driver_.cuEventDestroy(recording.event);
    if (one->end != nullptr) driver_.cuEventDestroy(one->end);
    if (one->last != nullptr) driver_.cuEventDestroy(one->last);
    delete one;
  }
  for (const auto* events : {&free_events_, &spare_events_})
    for (const CUevent event : *events) driver_.cuEventDestroy(event);
}

// `count`: there is none.
std::uint32_t ScriptStreams::find(CUstream handle, std::uint32_t from, std::uint32_t count) const {
  const auto is_it = [&](const Stream& one) {
    return !one.has_ended.load(std::memory_order_acquire) && one.handle.load(std::memory_order_relaxed) == handle;
  };
  while (from < count && !is_it(*all_[from].load(std::memory_order_relaxed))) ++from;
  return from;
}

Result<std::uint32_t> ScriptStreams::number_of(CUstream stream) {
  const CUstream handle = stream == CU_STREAM_LEGACY ? nullptr : stream;  // The default stream has a name, too.
  const std::uint32_t count = count_.load(std::memory_order_acquire);
  if (const std::uint32_t found = find(handle, 0, count); found < count) return found;
  const DriverScope scope(driver_, context_);
  const MutexLock lock(mutex_);
  const std::uint32_t now = count_.load(std::memory_order_relaxed);
  if (const std::uint32_t found = find(handle, 0, now); found < now) return found;
  for (std::uint32_t number = 0; number < now; ++number)
    if (take_over(*all_[number].load(std::memory_order_relaxed), handle)) return number;
  if (now == kMost)
    return fail(Errc::unavailable, fmt::format("the script uses more than {} CUDA streams at a time, which is not "
                                               "supported",
                                               std::uint32_t{kMost}));
  all_[now].store(new Stream(handle, blocks_), std::memory_order_relaxed);
  count_.store(now + 1, std::memory_order_release);
  return now;
}

// The number of a stream that has ended and is done. It goes on counting, so all uses of before are done.
bool ScriptStreams::take_over(Stream& stream, CUstream handle) {
  if (!stream.has_ended.load(std::memory_order_relaxed)) return false;
  if (stream.last != nullptr && driver_.cuEventQuery(stream.last) != CUDA_SUCCESS) return false;
  forget_done(stream);
  for (CUevent* const event : {&stream.end, &stream.last})
    if (*event != nullptr) driver_.cuEventDestroy(std::exchange(*event, nullptr));
  stream.done.store(stream.launches.load(), std::memory_order_relaxed);
  stream.handle.store(handle, std::memory_order_relaxed);
  stream.has_ended.store(false, std::memory_order_release);
  return true;
}

void ScriptStreams::forget_done(Stream& stream) {
  while (!stream.marks.empty() && driver_.cuEventQuery(stream.marks.front().event) == CUDA_SUCCESS) {
    stream.marked_done = stream.marks.front().launch;
    spare_events_.push_back(stream.marks.front().event);
    stream.marks.pop_front();
  }
}

void ScriptStreams::mark(Use use) {
  if (count_.load(std::memory_order_acquire) == 1 || is_done(use)) return;  // Nobody would wait.
  Stream& one = *all_[use.stream].load(std::memory_order_relaxed);
  const DriverScope scope(driver_, context_);
  const MutexLock lock(mutex_);
  forget_done(one);
  const std::uint64_t marked = one.marks.empty() ? one.marked_done : one.marks.back().launch;
  if (one.has_ended || use.launch <= marked) return;
  CUevent event = nullptr;
  if (!spare_events_.empty()) {
    event = spare_events_.back();
    spare_events_.pop_back();
  } else if (driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return;
  }
  const std::uint64_t launch = one.launches.load();  // All of those have been enqueued.
  const auto recorded = record(event, one);
  if (recorded && *recorded)
    one.marks.push_back({launch, event});
  else
    spare_events_.push_back(event);
}

bool ScriptStreams::is_captured(const Stream& stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver_.cuStreamIsCapturing(stream.handle, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// False: a graph is being captured there, and the event is of no use. That may begin at any moment.
Result<bool> ScriptStreams::record(CUevent event, const Stream& stream) const {
  if (is_captured(stream)) return false;
  TRY_VOID(driver_.check(driver_.cuEventRecord(event, stream.handle), "see when the script's kernels are done"));
  return !is_captured(stream);
}

Result<> ScriptStreams::let_wait(CUstream handle, std::span<const Use> uses) {
  if (uses.empty()) return {};
  const DriverScope scope(driver_, context_);
  for (const Use& use : uses) {
    if (is_done(use)) continue;
    Stream& one = *all_[use.stream].load(std::memory_order_relaxed);
    const MutexLock lock(mutex_);
    if (use.launch <= one.marked_done) continue;
    const auto marked = std::ranges::lower_bound(one.marks, use.launch, {}, &Recording::launch);
    CUevent event = marked != one.marks.end() ? marked->event : one.last;
    const bool is_ours = event == nullptr;
    if (is_ours) {
      TRY_VOID(driver_.check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "make an event"));
      TRY(const bool recorded, record(event, one));
      if (!recorded) {
        driver_.cuEventDestroy(event);
        return fail(Errc::unavailable,
                    "memory that another stream used comes to this one while that stream is captured into a graph, "
                    "which is not supported");
      }
    }
    TRY_VOID(driver_.check(driver_.cuStreamWaitEvent(handle, event, 0), "let a stream wait for another"));
    if (is_ours) driver_.cuEventDestroy(event);  // It goes once it is done.
  }
  waits(handle);  // Who waits for this stream now waits for those, too.
  return {};
}

void ScriptStreams::waits(CUstream stream) {
  const CUstream handle = stream == CU_STREAM_LEGACY ? nullptr : stream;
  const std::uint32_t count = count_.load(std::memory_order_acquire);
  if (const std::uint32_t number = find(handle, 0, count); number < count) enqueued(number);
}

void ScriptStreams::uses(std::uint32_t stream, std::uint64_t launch, BlockRange blocks) {
  Stream& one = *all_[stream].load(std::memory_order_relaxed);
  for (std::uint32_t block = blocks.first.value; block < blocks.end().value; ++block) {
    // Several threads may launch on one stream.
    std::uint64_t latest = one.latest[block].load(std::memory_order_relaxed);
    while (latest < launch && !one.latest[block].compare_exchange_weak(latest, launch, std::memory_order_relaxed)) {
    }
  }
}

void ScriptStreams::find_uses(BlockId block, std::vector<Use>& uses) const {
  const std::uint32_t count = count_.load(std::memory_order_acquire);
  for (std::uint32_t stream = 0; stream < count; ++stream) {
    const Stream& one = *all_[stream].load(std::memory_order_relaxed);
    const std::uint64_t latest = one.latest[block.value].load(std::memory_order_relaxed);
    if (latest > one.done) uses.push_back({stream, latest});
  }
}

Result<CUevent> ScriptStreams::event_after(Use use) {
  Stream& one = *all_[use.stream].load();
  if (!one.recorded.empty() && one.recorded.back().launch >= use.launch) {
    auto found = one.recorded.begin();
    while (found->launch < use.launch) ++found;
    return found->event;
  }
  CUevent event = nullptr;
  if (free_events_.empty()) {
    TRY_VOID(driver_.check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "make an event"));
  } else {
    event = free_events_.back();
    free_events_.pop_back();
  }
  const MutexLock lock(mutex_);
  // All of those have been enqueued; where it has ended, there will be no more.
  const std::uint64_t launch = one.launches.load();
  CHECK(launch >= use.launch);
  if (one.has_ended.load(std::memory_order_relaxed)) {
    free_events_.push_back(event);
    event = std::exchange(one.end, nullptr);
    CHECK(event != nullptr);  // Nothing is enqueued there any more: one recording says it all.
  } else {
    TRY(const bool recorded, record(event, one));
    if (!recorded) {
      driver_.cuEventDestroy(event);
      return nullptr;
    }
  }
  one.recorded.push_back({launch, event});
  ++awaited_;
  return event;
}

Result<> ScriptStreams::ends(CUstream handle) {
  const std::uint32_t count = count_.load(std::memory_order_acquire);
  const std::uint32_t number = find(handle, 0, count);
  if (number == count) return {};  // It has used nothing of ours.
  const DriverScope scope(driver_, context_);
  Stream& one = *all_[number].load();
  const MutexLock lock(mutex_);
  Result<> recorded;
  for (CUevent* const event : {&one.end, &one.last}) {
    if (recorded) recorded = driver_.check(driver_.cuEventCreate(event, CU_EVENT_DISABLE_TIMING), "make an event");
    if (recorded)
      recorded = driver_.check(driver_.cuEventRecord(*event, handle), "see when the script's kernels are done");
  }
  if (!recorded && driver_.cuStreamSynchronize(handle) == CUDA_SUCCESS) one.done = one.launches.load();
  one.has_ended.store(true, std::memory_order_relaxed);
  return recorded;
}

void ScriptStreams::wait_for_all() {
  for (std::uint32_t stream = 0; stream < count_; ++stream) {
    const Stream& one = *all_[stream].load();
    if (!one.has_ended)
      driver_.cuStreamSynchronize(one.handle);
    else if (one.end != nullptr)
      driver_.cuEventSynchronize(one.end);
    else if (!one.recorded.empty())
      driver_.cuEventSynchronize(one.recorded.back().event);
  }
}

Result<> ScriptStreams::poll() {
  const std::uint32_t count = awaited_ > 0 ? count_.load(std::memory_order_acquire) : 0;
  for (std::uint32_t stream = 0; stream < count; ++stream) {
    Stream& one = *all_[stream].load(std::memory_order_relaxed);
    while (!one.recorded.empty()) {
      const CUresult result = driver_.cuEventQuery(one.recorded.front().event);
      if (result == CUDA_ERROR_NOT_READY) break;
      TRY_VOID(driver_.check(result, "run the script's kernels"));
      one.done = one.recorded.front().launch;
      free_events_.push_back(one.recorded.front().event);
      one.recorded.pop_front();
      --awaited_;
    }
  }
  return {};
}

}  // namespace spillway
