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
    std::uint64_t number = 0;  // counted from 1
    Nanos duration, waited;
  };

  // A plan for an iteration that was not planned for before is followed from the next one on. What is planned again
  // for it, since times have changed, is on no trial.
  void plan_begins();
  // The script does something else.
  void begin_anew() { *this = PlanTrial(); }
  // An iteration has ended; told once more under its number, it has gone on after all.
  Verdict ended(const Iteration& iteration);
  bool gave_up() const { return stage_ == Stage::doubt || stage_ == Stage::given_up; }

 private:
  enum class Stage : std::uint8_t { learning, trial, doubt, followed, given_up };
  Verdict judge(const Iteration& iteration);

  static constexpr std::size_t kIterations = 5;  // of a stage, besides the first one
  static constexpr double kWorse = 0.05;         // so much of an iteration a plan may wait longer

  Stage stage_ = Stage::learning;
  Iteration last_;
  int to_pass_over_ = 1;  // before this stage's own: PyTorch sets itself up in the first one of all
  std::vector<Nanos> learning_, planned_, without_plan_;  // how long these waited
};

}  // namespace spillway
