#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "recorder/recorder.h"
#include "runtime/step_ends.h"

namespace spillway {

// Whether a plan is worth being followed, by how long iterations waited for memory with it and before it: medians of a
// few each. Whole durations differ by what else the machine does, waits hardly. A plan that loses is given up for good,
// unless the script does something else.
class Trial {
 public:
  // A plan is followed from the next iteration on: the first one for what is done now, or another one for the same. One
  // that was on trial makes room for the new one; where one has passed, none is on trial any more, nor is one that was
  // given. None that was made here begins after one was given up.
  void plan_begins(bool given);
  // None is followed from the next iteration on, since none is needed or the script does something else.
  void none_is_followed();
  // An optimizer step has ended. Judges each iteration that the recorder knows again, whatever was before it. The one
  // by which it was found counts, too, and so do those for which the plan of another iteration was still followed: to
  // wait longer than with that is reason enough. `waited`: for memory, in the run so far. True: the plan is given up.
  bool step_ended(const Recorder::Progress& progress, Nanos at, Nanos waited);

  bool is_dropped() const { return stage_ == Stage::dropped; }

 private:
  enum class Stage : std::uint8_t { learning, trial, followed, dropped };
  void enter(Stage stage);
  void forget();
  bool ended(const TimedIteration& iteration);
  bool loses() const;

  static constexpr std::size_t kIterations = 5;  // of a stage, besides the first one
  static constexpr double kWorse = 0.05;         // so much of an iteration a plan may wait longer

  Stage stage_ = Stage::learning;
  bool is_first_ = false;  // it still has to do with the stage before
  std::vector<TimedIteration> learning_, planned_;
  StepEnds step_ends_;           // in this stage
  std::uint64_t iteration_ = 0;  // the recorder's, which all this is about
};

}  // namespace spillway
