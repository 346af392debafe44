#include "hook/torch/hook.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "session/hook_side.h"

namespace spillway {
namespace {

thread_local std::unique_ptr<RunningKernel> running, last_run;  // which becomes the next one

thread_local ThreadTraining training;

TensorCost cost_of(const Storages::Storage& storage, const TensorMemory& memory) {
  const Bytes bytes{storage.bytes};
  return {.label = storage.lineage.label,
          .maker = storage.maker,
          .bytes = bytes,
          .moved = memory.moved(reinterpret_cast<const void*>(storage.begin), bytes) - storage.moved_before};
}

constexpr Nanos kCostsEvery{500'000'000};  // All storages are gone through.

// Of all that it was given, each byte once, and all that it made.
Bytes used_by(const KernelEvent& event) {
  Bytes used;
  for (const Birth& birth : event.births) used += birth.bytes;
  std::vector<Touch> touches = event.touches;
  std::ranges::sort(touches, [](const Touch& a, const Touch& b) {
    return std::pair(a.storage, a.begin) < std::pair(b.storage, b.begin);
  });
  StorageId storage;
  Bytes until;
  for (const Touch& touch : touches) {
    if (touch.storage != storage) until = Bytes{};
    storage = touch.storage;
    used += excess(touch.end, std::max(touch.begin, until));
    until = std::max(until, touch.end);
  }
  return used;
}

// PyTorch computes many shapes on `meta` by simpler operators, whose results no real kernel makes.
void leave_out_workspaces(KernelEvent& event) {
  std::erase_if(event.births, [&](const Birth& birth) { return std::erase(event.deaths, birth.storage) != 0; });
}

bool writes_any(const std::vector<ByteExtent>& extents) {
  return std::ranges::any_of(extents, [](const ByteExtent& extent) { return extent.writes; });
}

}  // namespace

Hook::Hook(Session& session, c10::Device device, std::unique_ptr<TensorMemory> memory)
    : session_(session), device_(device), memory_(std::move(memory)) {
  if (session.config.record_path[0] != '\0' || memory_->planning() != nullptr)
    recorder_.emplace(session.config.iteration);
  if (recorder_) memory_->measure_times();
}

Nanos Hook::now() { return {monotonic_ns()}; }

void* Hook::allocate(std::size_t bytes, CUstream_st* stream) {
  if (in_child()) {
    // A child that only runs another program is of no interest to the user, one that computes is.
    if (!child_registered_.exchange(true)) register_unmanaged(session_);
    auto memory = plain_.allocate({bytes});
    TORCH_CHECK_WITH(OutOfMemoryError, memory.has_value(), "spillway: ", memory.error().message);
    return *memory;
  }
  RunningKernel* const kernel = running.get();
  Lineage lineage = kernel ? kernel->lineage.birth(kernel->event.births.size()) : Lineage{};
  storages_.name(lineage);
  auto memory = memory_->allocate({.bytes = bytes,
                                   .place = kernel ? kernel->place_of_next_birth() : std::nullopt,
                                   .label = lineage.label,
                                   .stream = stream});
  if (!memory) {
    storages_.forget(lineage);
    raise_peak(session_.state.refused_bytes, bytes);
  }
  TORCH_CHECK_WITH(OutOfMemoryError, memory.has_value(), "spillway: ", memory.error().message);
  if (rests_.load(std::memory_order_relaxed) &&
      (memory_->is_short() || memory_->most_blocks() > rests_up_to_.load(std::memory_order_relaxed)))
    wake();
  const StorageId id = storages_.add({.id = {},
                                      .begin = reinterpret_cast<std::uintptr_t>(*memory),
                                      .bytes = bytes,
                                      .lineage = lineage,
                                      .maker = kernel ? kernel->op->name : std::string_view{},
                                      .moved_before = memory_->moved(*memory, {bytes})});
  const Birth birth{.storage = id, .bytes = Bytes{bytes}, .label = lineage.label};
  if (kernel) {
    kernel->event.births.push_back(birth);
    kernel->used += birth.bytes;
    say_if_oversized(*kernel);
  } else {
    const MutexLock lock(mutex_);
    born(birth);
  }
  return *memory;
}

void Hook::free(void* memory) noexcept {
  if (memory == nullptr) return;
  if (in_child()) {
    if (!memory_->contains(memory)) plain_.free(memory);
    return;
  }
  const auto storage = storages_.remove(memory);
  if (storage) costs_.died(cost_of(*storage, *memory_));
  memory_->free(memory);
  if (!storage) return;
  if (running) {
    running->event.deaths.push_back(storage->id);
  } else {
    const MutexLock lock(mutex_);
    if (recorder_) recorder_->died_outside(storage->id);
  }
}

bool Hook::runs_kernel() const { return running != nullptr; }

bool Hook::kernel_starts(const Operator& op, c10::ArrayRef<const c10::IValue> arguments) {
  if (op.only_looks) return false;
  thread_local Accesses accesses;
  find_accesses(op, device_, arguments, storages_, accesses);
  if (accesses.resized > 0) resized_.fetch_add(accesses.resized, std::memory_order_relaxed);
  const bool gradients = c10::GradMode::is_enabled();
  const bool differentiates = gradients && accesses.needs_gradient && !op.ignored;
  if (accesses.of_wrappers) {  // What it calls runs below autograd: that it is training shows here only.
    if (!differentiates) return false;
    const MutexLock lock(mutex_);
    phases_.trains(training);
    if (!iterations_.training_has_started()) iterations_.training_starts(now(), memory_->figures());
    return false;
  }
  std::unique_ptr<RunningKernel> kernel = last_run ? std::move(last_run) : std::make_unique<RunningKernel>();
  kernel->begin_anew();
  kernel->op = &op;
  kernel->lineage = accesses.lineage;
  kernel->event.name = op.name;
  kernel->event.shapes = accesses.shapes;
  kernel->event.replayable = op.replayable && accesses.sees_all;
  std::swap(kernel->event.touches, accesses.touches);
  ForeignMemory::Remains remains;
  bool something_ended = false;
  {
    const MutexLock lock(mutex_);
    const auto begun = phases_.kernel_starts(training, {.gradients = gradients,
                                                        .differentiates = differentiates,
                                                        .writes_parameter = accesses.writes_parameter,
                                                        .ignored = op.ignored,
                                                        .backward_pass = torch::autograd::get_current_graph_task_id(),
                                                        .touches = kernel->event.touches});
    if (recorder_) kernel->event.shape_list = shapes_.find_or_add(accesses.shapes, accesses.sizes);
    kernel->event.phase = begun.phase;
    kernel->event.updates = begun.updates;
    something_ended = begun.ended != TrainingPhases::Ended::nothing;
    has_ended(begun.ended);
    if (differentiates && !iterations_.training_has_started()) iterations_.training_starts(now(), memory_->figures());
    if (follower_ && begun.is_recorded)
      if (const auto place = follower_->next(signature_of(op.name, accesses.shapes))) {
        kernel->plan = plan_;
        kernel->place = {*place};
      }
    foreign_.used(accesses.foreign, remains);
    raise_peak(session_.state.unmanaged_peak_bytes, foreign_.peak().value);
  }
  if (something_ended) go_on_with_disk_work();
  kernel->known_to_memory = !op.ignored || op.fills_new || writes_any(accesses.extents);
  if (kernel->known_to_memory)
    memory_->kernel_ready({.plan = kernel->plan ? &kernel->plan->run : nullptr,
                           .kernel = kernel->place,
                           .execution = kernel->lineage.execution(),
                           .name = op.name},
                          accesses.extents);
  kernel->event.start = now();
  kernel->event.stalled_at_start = memory_->stalled(kernel->event.start);
  kernel->splits_before = memory_->splits();
  for (const Touch& touch : kernel->event.touches) kernel->used += excess(touch.end, touch.begin);
  running = std::move(kernel);
  say_if_oversized(*running);
  return true;
}

void Hook::kernel_calls_another() { std::atomic_ref(running->op->calls_others).store(true, std::memory_order_relaxed); }

void Hook::kernel_ends() {
  if (!running) return;
  last_run = std::move(running);
  RunningKernel* const kernel = last_run.get();
  kernel->event.end = now();
  kernel->event.stalled_at_end = memory_->stalled(kernel->event.end);
  if (session_.config.mode == SessionMode::dry_run) leave_out_workspaces(kernel->event);
  if (memory_->splits() != kernel->splits_before) name_larger_than_memory(*kernel);
  if (kernel->is_oversized) {
    const MutexLock lock(mutex_);
    session_.state.oversized.store({});
  }
  if (kernel->known_to_memory) kernel->event.on_device = memory_->kernel_done();
  const bool has_data = !kernel->event.touches.empty() || !kernel->event.births.empty();
  const MutexLock lock(mutex_);
  const bool planned = kernel->plan != nullptr;
  kernel->plan.reset();
  const bool is_recorded = phases_.is_recorded(training);
  const bool is_of_iteration = phases_.kernel_ends(training, kernel->op->ignored);
  if (has_data && is_of_iteration) iterations_.kernel_ended(planned);
  if (is_recorded) last_end_ = std::max(last_end_, kernel->event.end);
  if (!recorder_) return;
  if (is_of_iteration) return recorder_->kernel(kernel->event);
  for (const Birth& birth : kernel->event.births) born(birth);
  for (const Touch& touch : kernel->event.touches)
    if (touch.writes) recorder_->written_outside(touch.storage);
  for (const StorageId dead : kernel->event.deaths) recorder_->died_outside(dead);
  if (is_recorded) recorder_->leave_out(kernel->event.duration());
}

void Hook::born(Birth birth) {
  if (recorder_) phases_.is_recorded(training) ? recorder_->born_outside(birth) : recorder_->born_elsewhere(birth);
}

void Hook::has_ended(TrainingPhases::Ended what) {
  if (what == TrainingPhases::Ended::nothing) return;
  if (what == TrainingPhases::Ended::backward_pass) count(iterations_.backward_ended(last_end_, memory_->figures()));
  iteration_may_have_ended();
}

void Hook::count(const CountedIteration& iteration) {
  using enum IterationEnded::Place;
  auto& all = session_.state.iterations;
  if (iteration.ended.place == first) forget_iterations(session_);
  iteration.ended.place == last ? all.replace_last(iteration.figures) : all.add(iteration.figures);
  memory_->iteration_ended(iteration.ended);
}

void Hook::anchor() {
  if (const auto times = memory_->times_on_device()) recorder_->took(*times);
  recorder_->anchor();
}

void Hook::iteration_may_have_ended() {
  const Nanos before = now();
  if (before - costs_published_ > costs_rest_) publish_costs();
  publish_rates();
  if (!recorder_ || rests_) return;
  anchor();
  // The end of a backward pass may turn out not to have ended an iteration: such a trace is written at the end only.
  if (!recorder_->has_iteration()) {
    if (!keeps_trace_ && (session_.state.recorded != 0 || !disk_work_.is_done())) take_trace_back();
  } else if (phases_.has_optimizer() && trace_is_wanted_now() && (recorder_->take_news() || taken_back_)) {
    save_trace_so_far();
  }
  plan_ahead();
  recorder_->leave_out(excess(now(), before));
  rest_if_all_fits();
}

// Not where somebody wants to have it all: a trace, a journal. An iteration of several steps is told by what these
// write.
void Hook::rest_if_all_fits() {
  constexpr std::uint64_t kKnownWell = 8;
  const SessionConfig& config = session_.config;
  const bool is_recorded = config.journal_path[0] != '\0' || (trace_is_wanted() && !config.records_for_itself);
  if (config.mode != SessionMode::run || is_recorded || config.plan_path[0] != '\0') return;
  if (memory_->is_short() || something_moved() || !phases_.has_optimizer()) return;
  if (training.backward_pass != kNoBackwardPass) return;
  const Recorder::Progress progress = recorder_->progress();
  if (progress.steps_each != 1 || progress.repetitions < kKnownWell) return;
  rests_up_to_ = memory_->most_blocks() + memory_->most_blocks() / 8;
  rests_ = true;
}

// What was found of operators before is void: nobody knows what came since. The trace is still that of an iteration.
void Hook::wake() {
  {
    const MutexLock lock(mutex_);
    if (!rests_.exchange(false)) return;
    keeps_trace_ = session_.state.recorded != 0;
    if (recorder_) recorder_->forget_anchors();
  }
  watch_or_rest();
}

// Without the other locks, since PyTorch is called.
void Hook::watch_or_rest() {
  const MutexLock lock(watching_mutex_);
  if (watch_operators_) watch_operators_(!rests_);
}

// As the trace calls them.
void Hook::name_tensors(const RecordedIteration& iteration) {
  names_.clear();
  for (std::size_t tensor = 0; tensor < iteration.labels.size(); ++tensor)
    names_.emplace(iteration.labels[tensor], iteration.trace.tensors[tensor].name);
}

bool Hook::something_moved() const { return has_moved(session_.state.memory.load()); }

// Now and then, for nobody knows how the script will end.
void Hook::publish_costs() {
  if (!something_moved()) return;
  const Nanos begin = now();
  std::vector<TensorCost> alive;
  for (const Storages::Storage& storage : storages_.all()) alive.push_back(cost_of(storage, *memory_));
  std::array<CostFigures, kMostCosts> highest;
  std::size_t count = 0;
  for (const TensorCost& cost : costs_.highest(kMostCosts, alive)) {
    const auto name = names_.find(cost.label);
    highest[count++] = {.name = name == names_.end() ? std::string_view{} : name->second,
                        .maker = cost.maker,
                        .bytes = cost.bytes,
                        .moved = cost.moved.all,
                        .waited_for = cost.moved.waited_for};
  }
  session_.state.costs.store(highest);
  costs_published_ = now();
  // All tensors have been looked at, and there may be very many: no more than a hundredth of the time is for that.
  costs_rest_ = std::max(kCostsEvery, Nanos{100 * (costs_published_ - begin).value});
}

void Hook::publish_rates() {
  if (memory_->planning() == nullptr) return;
  const Pager& pager = memory_->planning()->pager();
  if (const auto rate = pager.ssd_read()) session_.state.ssd_read_rate = rate->value;
  if (const auto rate = pager.ssd_write()) session_.state.ssd_write_rate = rate->value;
}

void Hook::optimizer_step_starts(std::string_view name) {
  const MutexLock lock(mutex_);
  const bool is_first = phases_.step_starts(training, name, torch::autograd::get_current_graph_task_id());
  if (is_first && recorder_) recorder_->forget_anchors();
}

void Hook::optimizer_step_ends() {
  const bool rested = rests_;
  bool within_backward = false;
  {
    const MutexLock lock(mutex_);
    const auto ended = phases_.step_ends(training, !rested);
    if (!ended) return;
    count(iterations_.step_ended(now(), memory_->figures(), ended->written));
    within_backward = ended->within_backward;
    if (!within_backward) iteration_may_have_ended();
  }
  go_on_with_disk_work();
  if (rested && within_backward) wake();  // It takes operators to see that end.
  if (rested != rests_) watch_or_rest();
}

void Hook::compiled_code_seen() {
  if (compiled_seen_.exchange(true)) return;
  add_notice(
      session_,
      "torch.compile is in use: compiled kernels run outside of PyTorch's operators, so that a trace lacks them; their "
      "memory is held within the budget all the same");
}

// The report of a script that ends meanwhile names it.
void Hook::say_if_oversized(RunningKernel& kernel) {
  const Bytes budget{session_.config.device_budget_bytes};
  if (kernel.used <= budget || kernel.is_oversized || kernel.used < kernel.looked_at * 2) return;
  if (session_.config.mode != SessionMode::run) return;
  kernel.looked_at = kernel.used;
  const Bytes used = used_by(kernel.event);
  if (used <= budget) return;
  kernel.is_oversized = true;
  OversizedOperator oversized{.used = used};
  oversized.name = kernel.op->name;
  const MutexLock lock(mutex_);
  session_.state.oversized.store(oversized);
}

// Whatever it was given: many make more inside. Other threads' kernels may have had a part in it.
void Hook::name_larger_than_memory(const RunningKernel& kernel) {
  constexpr std::uint32_t kMostNamed = 3;
  const Bytes budget{session_.config.device_budget_bytes}, used = used_by(kernel.event);
  if (used <= budget) return;  // Others' blocks were split, or what it uses came in an order that does not suit.
  if (session_.config.mode != SessionMode::run || std::atomic_ref(kernel.op->used_too_much).exchange(true)) return;
  if (larger_named_.fetch_add(1) >= kMostNamed) return;
  const KernelEvent& event = kernel.event;
  const auto share = [&](Nanos time) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f", seconds(time));
    return std::string(text.data());
  };
  add_notice(session_, std::string(kernel.op->name) + " used " + to_text(used) +
                           ", which is more than the device memory of " + to_text(budget) +
                           ", so that parts of it came by page faults; its first time it waited " +
                           share(excess(event.stalled_at_end, event.stalled_at_start)) + " of " +
                           share(excess(event.end, event.start)) + " s; more memory would help (--device-memory)");
}

void Hook::child_runs(c10::ArrayRef<const c10::IValue> arguments) {
  if (session_.config.mode == SessionMode::dry_run) return;  // Nobody touches what has no bytes.
  if (child_warned_.load(std::memory_order_relaxed) || memory_->is_served()) return;
  if (!any_tensor_lies_in([&](const void* data) { return memory_->contains(data); }, device_, arguments)) return;
  if (session_.state.child_warned.exchange(1) == 0)
    add_notice(
        session_,
        "a forked process uses tensors of its parent that could not be served to it: touching them ends it with a "
        "segmentation fault; start worker processes with multiprocessing_context='spawn', or put what they read "
        "into shared memory first (tensor.share_memory_())");
  child_warned_.store(true, std::memory_order_relaxed);
}

void Hook::say_what_was_resized() {
  if (session_.config.mode != SessionMode::dry_run || resized_ == 0) return;
  add_notice(session_, "tensors that were resized are not in the trace, though operators used such " +
                           std::to_string(resized_) +
                           " times: on `meta`, PyTorch asks nobody for their memory (resize_, out= an empty tensor, "
                           "torch.range); make them in their full size");
}

void Hook::finish() {
  if (in_child()) return;
  auto ended = TrainingPhases::Ended::nothing;
  {
    const MutexLock lock(mutex_);
    ended = phases_.script_ends();
    if (ended == TrainingPhases::Ended::backward_pass) count(iterations_.backward_ended(last_end_, memory_->figures()));
  }
  memory_->script_ends();  // A journal that has ended has all iterations.
  say_what_was_resized();
  {
    const MutexLock lock(mutex_);
    if (ended == TrainingPhases::Ended::backward_pass) {
      if (recorder_) anchor();
    } else {
      has_ended(ended);
    }
    if (recorder_ && something_moved())
      if (const auto iteration = recorder_->iteration()) name_tensors(*iteration);
    publish_costs();
    if (recorder_ && memory_->planning() && something_moved()) {
      // What was made within an iteration that nobody ended. A plan that is followed stays: kernels may still run.
      if (const auto outcome = memory_->planning()->take(recorder_->progress())) {
        planning_error_ = outcome->error;
        if (!plan_) plan_ = outcome->plan;
      }
      session_.state.no_plan.store(why_not_planned());
    } else if (recorder_ && !phases_.has_optimizer()) {
      session_.state.no_plan.store({NoPlan::no_optimizer, {}});
    }
    if (recorder_ && trace_is_wanted()) save_last_trace();
    recorder_.reset();
  }
  disk_work_.finish();
}

}  // namespace spillway
