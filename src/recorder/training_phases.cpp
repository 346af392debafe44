#include "recorder/training_phases.h"

#include <utility>

#include "base/check.h"

namespace spillway {

// A thread may train first, to try something, and then evaluate beside another one that trains.
bool TrainingPhases::is_training(const ThreadTraining& thread) const {
  CHECK(thread.last <= ends_ + 1);
  return thread.last != 0 && thread.last + 1 > ends_;
}

void TrainingPhases::trains(ThreadTraining& thread) {
  thread.last = ends_ + 1;
  somebody_trains_ = true;
}

TrainingPhases::Begun TrainingPhases::kernel_starts(ThreadTraining& thread, const Kernel& kernel) {
  CHECK(thread.steps_open >= 0 && (thread.steps_open == 0 || has_optimizer_));
  Begun begun;
  // A step may be made within a backward pass, as soon as a parameter has its gradient.
  const bool in_step = thread.steps_open > 0;
  const bool in_pass = kernel.backward_pass != kNoBackwardPass;
  const bool backward = in_pass && !(in_step && kernel.backward_pass == thread.backward_pass);
  if (!in_pass && steps_in_backward_ && is_training(thread)) {  // Not one of a thread beside the backward pass.
    steps_in_backward_ = false;
    ++ends_;
    begun.ended = Ended::steps_in_backward;
  }
  const bool in_closure = in_step && is_in_closure(thread, kernel, backward);
  begun.phase = backward ? Phase::backward : in_step && !in_closure ? Phase::optimizer : Phase::forward;
  begun.updates = has_optimizer_ ? begun.phase == Phase::optimizer : kernel.writes_parameter;
  if (begun.phase != Phase::forward || kernel.writes_parameter || kernel.differentiates) trains(thread);
  if (!kernel.ignored && is_training(thread) && backward_pass_ended(begun.phase)) begun.ended = Ended::backward_pass;
  if (begun.phase == Phase::optimizer)
    for (const Touch& touch : kernel.touches)
      if (touch.writes) insert_ascending(thread.written, {touch.storage, touch.begin});
  begun.is_recorded = !kernel.ignored && is_recorded(thread);
  return begun;
}

bool TrainingPhases::kernel_ends(const ThreadTraining& thread, bool ignored) {
  const bool recorded = is_recorded(thread);
  not_recorded_ += !ignored && !recorded;
  return !ignored && recorded;
}

// An optimizer may call the script's closure, which computes gradients again; that ends with its backward pass. Before
// it is known by its gradients, the closure may make a batch: in the steps of optimizers that are known to call
// closures. PyTorch's own optimizers switch gradients off for themselves, so what runs with gradients is the closure's.
bool TrainingPhases::is_in_closure(ThreadTraining& thread, const Kernel& kernel, bool backward) {
  if (kernel.differentiates || backward) {
    calls_closures_.insert(thread.step);
    thread.in_closure = true;
    thread.closure_ends = backward;
  } else if (std::exchange(thread.closure_ends, false)) {
    thread.in_closure = false;
  }
  if (!kernel.gradients && !backward) switches_gradients_off_.insert(thread.step);
  return kernel.gradients && (thread.in_closure ||
                              (calls_closures_.contains(thread.step) && switches_gradients_off_.contains(thread.step)));
}

// Without an optimizer that says when it is done, the first kernel that is not of a backward pass ends one.
bool TrainingPhases::backward_pass_ended(Phase next) {
  const bool was_in_it = std::exchange(in_backward_, next == Phase::backward);
  if (!was_in_it || in_backward_ || has_optimizer_) return false;
  ++ends_;
  return true;
}

bool TrainingPhases::step_starts(ThreadTraining& thread, std::string_view name, int backward_pass) {
  CHECK(thread.steps_open >= 0);
  trains(thread);
  if (thread.steps_open++ == 0) {
    thread.step = name;
    thread.written.clear();
    thread.backward_pass = backward_pass;
    thread.in_closure = calls_closures_.contains(thread.step);
    thread.closure_ends = false;
  }
  return !std::exchange(has_optimizer_, true);
}

std::optional<TrainingPhases::StepEnd> TrainingPhases::step_ends(ThreadTraining& thread, bool watched) {
  if (thread.steps_open == 0) return std::nullopt;
  if (--thread.steps_open > 0) return std::nullopt;  // an optimizer that wraps another one
  CHECK(has_optimizer_);
  if (watched) last_written_ = thread.written;
  const bool within_backward = thread.backward_pass != kNoBackwardPass;
  if (within_backward)
    steps_in_backward_ = true;
  else
    ++ends_;
  return StepEnd{.written = last_written_, .within_backward = within_backward};
}

TrainingPhases::Ended TrainingPhases::script_ends() {
  CHECK(!steps_in_backward_ || has_optimizer_);
  if (std::exchange(steps_in_backward_, false)) {
    ++ends_;
    return Ended::steps_in_backward;
  }
  return std::exchange(in_backward_, false) && !has_optimizer_ ? Ended::backward_pass : Ended::nothing;
}

}  // namespace spillway
