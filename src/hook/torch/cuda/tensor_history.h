#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "hook/torch/cuda/pytorch_cuda.h"

namespace spillway {

// What torch.cuda.memory._record_memory_history asks for, of our tensors. Entries have no context of compiled code.
//
// Any thread.
class TensorHistory {
 public:
  using Entry = c10::CachingDeviceAllocator::TraceEntry;
  using Action = Entry::Action;
  using Context = std::shared_ptr<c10::GatheredContext>;
  using CreateContext = c10::CachingDeviceAllocator::CreateContextFn;
  using RecordContext = c10::CachingDeviceAllocator::RecordContext;
  using Tracker = c10::CachingDeviceAllocator::AllocatorTraceTracker;

  struct Wishes {
    bool enabled = false;
    CreateContext create_context = nullptr;
    std::size_t most_entries = 0;  // the newest ones
    RecordContext when = RecordContext::NEVER;
    bool clear = false;
    std::vector<Action> skipped;
  };
  void set(Wishes wishes);
  // Is told all of them, under our lock: it must call nobody who may call an allocator.
  void attach(Tracker tracker);

  // Where the script is, if that is wanted as often as this. Takes the interpreter's lock: to be called with none held.
  Context context(RecordContext level) const;
  bool is_wanted() const { return is_wanted_.load(std::memory_order_relaxed); }
  struct Happened {
    Action action;
    c10::DeviceIndex device;
    std::size_t address, bytes;
    cudaStream_t stream;
    Context context;
    std::string metadata = {};  // of the script, for all that it does now
  };
  void add(Happened happened);

  // From the oldest on. Their times are in microseconds of the system's clock.
  std::vector<Entry> entries() const;

 private:
  mutable Mutex mutex_;
  Wishes wishes_ SPILLWAY_GUARDED_BY(mutex_);
  std::deque<Entry> entries_ SPILLWAY_GUARDED_BY(mutex_);
  std::vector<Tracker> trackers_ SPILLWAY_GUARDED_BY(mutex_);
  std::atomic<bool> is_wanted_{false};
  std::atomic<RecordContext> level_{RecordContext::NEVER};
  std::atomic<CreateContext> create_context_{nullptr};
  mutable c10::ApproximateClockToUnixTimeConverter clock_;
};

}  // namespace spillway
