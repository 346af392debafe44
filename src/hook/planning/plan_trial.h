#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace spillway {

// Whether a plan is worth being followed, by how long iterations waited for memory with it and without: medians of a
// few each. Whole durations differ by what else the machine does, waits hardly. Where the plan loses, a few iterations
// without it show whether it was the plan, before that is final.
class PlanTrial {
 public:
  enum class Verdict : std::uint8_t { go_on, give_up, take_up_again };
  struct Iteration {
    Nanos duration, waited;
  };

  // A plan is followed from the next iteration on: the first one for what is done now, or another one for the same. One
  // that was on trial makes room for the new one; one that has passed is on trial no more, whatever takes its place.
  void plan_begins();
  // The script does something else.
  void begin_anew() { *this = PlanTrial(); }
  // One that was planned for, or might be, has ended, as a whole.
  Verdict ended(const Iteration& iteration);
  bool gave_up() const { return stage_ == Stage::doubt || stage_ == Stage::given_up; }

 private:
  enum class Stage : std::uint8_t { learning, trial, doubt, followed, given_up };
  void enter(Stage stage);
  bool loses_to(const std::vector<Iteration>& others) const;

  static constexpr std::size_t kIterations = 5;  // of a stage, besides the first one
  static constexpr double kWorse = 0.05;         // so much of an iteration a plan may wait longer

  Stage stage_ = Stage::learning;
  bool is_first_ = false;  // it still has to do with the stage before
  std::vector<Iteration> learning_, planned_, without_plan_;
};

}  // namespace spillway
