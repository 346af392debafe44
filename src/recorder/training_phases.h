#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recorder/events.h"

namespace spillway {

inline constexpr int kNoBackwardPass = -1;

// What one thread does for training. A thread that only prepares batches, evaluates or keeps copies trains nothing.
struct ThreadTraining {
  // When it last computed something that needs gradients, gradients, or new parameters: counted in ends of iterations,
  // 0 for never.
  std::uint64_t last = 0;
  std::string step;                     // the name of the optimizer step under way
  int steps_open = 0;                   // nested Optimizer.step calls
  std::vector<Updated> written;         // by it, ascending
  int backward_pass = kNoBackwardPass;  // that it is, or was, a part of
  bool in_closure = false;              // the script's, which the step has called
  bool closure_ends = false;            // if no more of its backward pass comes
};

// Tells from what threads do in which phase of training a kernel is, who trains, and when an iteration may have ended.
// It knows no framework and no clock. Calls come one at a time, each with the state of the thread that it is about.
class TrainingPhases {
 public:
  struct Kernel {
    bool gradients = false;               // are switched on
    bool differentiates = false;          // what it makes needs gradients
    bool writes_parameter = false;        // one that has a gradient
    bool ignored = false;                 // it is no part of an iteration
    int backward_pass = kNoBackwardPass;  // that the thread is in
    std::span<const Touch> touches{};
  };
  // What a kernel that starts shows to be over, or the script's end.
  enum class Ended : std::uint8_t {
    nothing,
    steps_in_backward,  // made within one backward pass: all of them are one
    backward_pass,      // which ends an iteration as long as no optimizer says that it is done
  };
  struct Begun {
    Phase phase = Phase::other;
    bool updates = false;  // see KernelEvent
    bool is_recorded = false;
    Ended ended = Ended::nothing;
  };
  Begun kernel_starts(ThreadTraining& thread, const Kernel& kernel);
  // Whether it is to be recorded as a kernel of the training: not always as when it started.
  bool kernel_ends(const ThreadTraining& thread, bool ignored);
  // Something that needs gradients is computed by kernels that do not show it.
  void trains(ThreadTraining& thread);

  // True: it is the first one, and what seemed to end iterations before it did not.
  bool step_starts(ThreadTraining& thread, std::string_view name, int backward_pass);
  struct StepEnd {
    const std::vector<Updated>& written;
    bool within_backward;  // The iteration ends with that. Else it may have ended now.
  };
  // Nothing where the step is a part of another one, or has begun before anybody looked. `watched`: its kernels were
  // told; else it counts as having written what the one before it has.
  std::optional<StepEnd> step_ends(ThreadTraining& thread, bool watched);

  Ended script_ends();

  // Threads that do not train run beside those that do, in no order that repeats.
  bool is_recorded(const ThreadTraining& thread) const { return is_training(thread) || !somebody_trains_; }
  bool has_optimizer() const { return has_optimizer_; }         // The script marks its steps.
  std::uint64_t not_recorded() const { return not_recorded_; }  // kernels of threads that do not train

 private:
  bool is_training(const ThreadTraining& thread) const;
  bool is_in_closure(ThreadTraining& thread, const Kernel& kernel, bool backward);
  bool backward_pass_ended(Phase next);

  std::uint64_t ends_ = 0;                        // of iterations, or what may be one
  bool somebody_trains_ = false;                  // some thread does, or did
  bool has_optimizer_ = false;                    // a step was made
  bool steps_in_backward_ = false;                // some were made within the backward pass that goes on
  bool in_backward_ = false;                      // the last kernel of threads that train was one of a backward pass
  std::set<std::string> switches_gradients_off_;  // optimizers' steps that run without gradients
  std::set<std::string> calls_closures_;          // optimizers' steps that compute gradients
  std::vector<Updated> last_written_;             // by a step that was watched
  std::uint64_t not_recorded_ = 0;
};

}  // namespace spillway
