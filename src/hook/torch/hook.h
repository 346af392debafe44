#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "hook/torch/accesses.h"
#include "hook/torch/disk_work.h"
#include "hook/torch/foreign_memory.h"
#include "hook/torch/operators.h"
#include "hook/torch/plain_memory.h"
#include "hook/torch/storages.h"
#include "hook/torch/tensor_memory.h"
#include "machines/real/disk_wait.h"
#include "recorder/follower.h"
#include "recorder/known_shapes.h"
#include "recorder/recorder.h"
#include "recorder/training_phases.h"
#include "runtime/iterations.h"
#include "runtime/planning.h"
#include "runtime/tensor_costs.h"
#include "runtime/trial.h"
#include "session/session.h"

namespace spillway {

inline constexpr const char* kTraceSource = "pytorch " SPILLWAY_TORCH_RELEASE;

// The kernel that a thread runs: the outermost operator whose tensors have memory.
struct RunningKernel {
  const Operator* op = nullptr;
  KernelLineage lineage{""};
  KernelEvent event;
  std::shared_ptr<const Proposal> plan;  // null: it has no place in one
  KernelId place = kNoKernel;
  // What is no part of an iteration, and only looks at memory or makes some, is no kernel to the memory: it would look
  // ahead from there, beside the plan.
  bool known_to_memory = true;
  std::uint64_t splits_before = 0;
  Bytes used;                 // bytes that it was given, some perhaps several times, and that it has made
  Bytes looked_at;            // `used` when it was looked at last whether it is too much
  bool is_oversized = false;  // the session says so

  // Its lists keep their memory: there are very many kernels, one after the other.
  void begin_anew() {
    place = kNoKernel;
    event.on_device.reset();
    known_to_memory = true;
    used = looked_at = Bytes{};
    is_oversized = false;
    event.touches.clear();
    event.births.clear();
    event.deaths.clear();
  }

  // Where the plan wants what is made now.
  std::optional<std::uint64_t> place_of_next_birth() const {
    if (!plan) return std::nullopt;
    const auto& places = plan->births[place.value];
    return event.births.size() < places.size() ? places[event.births.size()] : std::nullopt;
  }
};

// The one session of this process: takes what the allocator and the operators' callbacks see to the memory, the
// recorder and the supervisor. Any thread. Never destroyed, since tensors die after everything else.
//
// Locks: `mutex_` before the storages', the memory's and the disk work's, which are leaves. None is held while managed
// memory is touched, while PyTorch is called (but to ask which backward pass a thread is in), while a disk is waited
// for (but for what a tensor needs that is made) or while the interpreter's lock is awaited.
class Hook {
 public:
  // Of tensors on that device; others are none of its business.
  Hook(Session& session, c10::Device device, std::unique_ptr<TensorMemory> memory);

  static Nanos now();

  // The allocator's side.
  void* allocate(std::size_t bytes, CUstream_st* stream = nullptr);  // throws PyTorch's out-of-memory error
  void free(void* memory) noexcept;
  // Of a GPU: another stream than the one that it was allocated for uses it, too.
  void record_stream(void* memory, CUstream_st* stream) { memory_->record_stream(memory, stream); }
  bool manages(const void* memory) const { return memory_->contains(memory); }

  // The operators' side. A thread that runs a kernel starts no second one. False: the operator is none, but may call
  // some.
  bool runs_kernel() const;
  bool kernel_starts(const Operator& op, c10::ArrayRef<const c10::IValue> arguments);
  void kernel_ends();
  // The kernel that this thread runs calls another operator.
  void kernel_calls_another();
  void optimizer_step_starts(std::string_view name);
  void optimizer_step_ends();
  void compiled_code_seen();
  // How PyTorch is told to call kernel_starts() or not to.
  void operators_are_watched_by(std::function<void(bool)> watch) {
    const MutexLock lock(watching_mutex_);
    watch_operators_ = std::move(watch);
  }
  Operators& operators() { return operators_; }

  // In a forked child: nothing here is used any more, and all memory is plain.
  void enter_child() noexcept { in_child_.store(true, std::memory_order_relaxed); }
  bool in_child() const { return in_child_.load(std::memory_order_relaxed); }
  // The signal that a child gets for touching a managed tensor explains itself only if the child did not install a
  // handler of its own, as DataLoader's workers do: so the report explains it.
  void child_runs(c10::ArrayRef<const c10::IValue> arguments);

  // At exit: writes the trace with all that was seen.
  void finish();

 private:
  void say_if_oversized(RunningKernel& kernel);
  void say_what_was_resized();
  void name_larger_than_memory(const RunningKernel& kernel);
  void has_ended(TrainingPhases::Ended what) SPILLWAY_REQUIRES(mutex_);
  void count(const CountedIteration& iteration) SPILLWAY_REQUIRES(mutex_);
  void born(Birth birth) SPILLWAY_REQUIRES(mutex_);
  void anchor() SPILLWAY_REQUIRES(mutex_);
  void iteration_may_have_ended() SPILLWAY_REQUIRES(mutex_);
  void rest_if_all_fits() SPILLWAY_REQUIRES(mutex_);
  void wake() SPILLWAY_EXCLUDES(mutex_);
  void watch_or_rest() SPILLWAY_EXCLUDES(mutex_);
  void name_tensors(const RecordedIteration& iteration) SPILLWAY_REQUIRES(mutex_);
  bool something_moved() const;
  void publish_costs() SPILLWAY_REQUIRES(mutex_);
  void publish_rates();
  // hook_plans.cpp
  void plan_ahead() SPILLWAY_REQUIRES(mutex_);
  void take_up(const Planning::Outcome& outcome) SPILLWAY_REQUIRES(mutex_);
  void follow_plan() SPILLWAY_REQUIRES(mutex_);
  void stop_following(PlanEnd why) SPILLWAY_REQUIRES(mutex_);
  void try_plan(const Recorder::Progress& progress) SPILLWAY_REQUIRES(mutex_);
  WhyNoPlan why_not_planned() SPILLWAY_REQUIRES(mutex_);
  void save_plan_followed() SPILLWAY_REQUIRES(mutex_);
  // hook_trace.cpp
  struct TraceSoFar {
    Trace trace;
    std::uint64_t steps;
  };
  bool trace_is_wanted() const;
  bool trace_is_wanted_now() const;
  void take_trace_back();
  Result<TraceSoFar> trace_so_far() SPILLWAY_REQUIRES(mutex_);
  void save_trace_so_far() SPILLWAY_REQUIRES(mutex_);
  void save_last_trace() SPILLWAY_REQUIRES(mutex_);
  void go_on_with_disk_work() SPILLWAY_EXCLUDES(mutex_);
  Result<> write(TraceSoFar made) SPILLWAY_EXCLUDES(mutex_);
  void say_what_was_recorded(const Result<>& saved, std::uint64_t not_recorded);
  DiskWait record_wait();

  Session& session_;
  c10::Device device_;
  std::unique_ptr<TensorMemory> memory_;
  PlainMemory plain_;  // of forked children
  Storages storages_;
  TensorCosts costs_;
  Operators operators_;
  std::atomic<bool> in_child_{false};
  std::atomic<bool> child_registered_{false};
  std::atomic<bool> child_warned_{false};
  std::atomic<bool> compiled_seen_{false};
  std::atomic<std::uint64_t> resized_{0};       // uses of what outgrew its memory behind our back
  std::atomic<std::uint32_t> larger_named_{0};  // operators that used more than the device may hold

  // While everything fits, once the iteration is known well, operators are not watched: they cost nothing then.
  std::atomic<bool> rests_{false};
  std::atomic<std::uint32_t> rests_up_to_{0};  // so many blocks: more is another iteration
  Mutex watching_mutex_;                       // Nothing else is taken under it.
  std::function<void(bool)> watch_operators_ SPILLWAY_GUARDED_BY(watching_mutex_);

  DiskWork disk_work_;
  std::atomic<bool> taken_back_{false};  // a trace was, and none has been left to be saved since

  Mutex mutex_;
  bool keeps_trace_ SPILLWAY_GUARDED_BY(mutex_) = false;  // of before a rest: that iteration was known well
  KnownShapes shapes_ SPILLWAY_GUARDED_BY(mutex_);        // of what the recorder is told
  std::optional<Recorder> recorder_ SPILLWAY_GUARDED_BY(mutex_);
  // That is followed, if trial_ has not given it up.
  std::shared_ptr<const Proposal> plan_ SPILLWAY_GUARDED_BY(mutex_);
  std::optional<Follower> follower_ SPILLWAY_GUARDED_BY(mutex_);  // of its iteration
  Trial trial_ SPILLWAY_GUARDED_BY(mutex_);                       // of the plan
  bool plan_is_saved_ SPILLWAY_GUARDED_BY(mutex_) = true;         // false: it is taken up, and no step has ended since
  std::string planning_error_ SPILLWAY_GUARDED_BY(mutex_);        // the last one
  bool given_was_refused_ SPILLWAY_GUARDED_BY(mutex_) = false;    // and has not been followed since
  // Of tensors in the recorded iteration.
  std::unordered_map<TensorLabel, std::string> names_ SPILLWAY_GUARDED_BY(mutex_);
  Nanos costs_published_ SPILLWAY_GUARDED_BY(mutex_);  // when that was last
  Nanos costs_rest_ SPILLWAY_GUARDED_BY(mutex_);       // how long it is not done again
  TrainingPhases phases_ SPILLWAY_GUARDED_BY(mutex_);
  Iterations iterations_ SPILLWAY_GUARDED_BY(mutex_);
  ForeignMemory foreign_ SPILLWAY_GUARDED_BY(mutex_);
  Nanos last_end_ SPILLWAY_GUARDED_BY(mutex_);  // of a kernel of threads that train
};

}  // namespace spillway
