#include "hook/planning/plan_trial.h"

#include <algorithm>
#include <utility>

namespace spillway {
namespace {

// Of an even number the lower one of the two in the middle: the first ones to be learned from are long.
double median_seconds(std::vector<PlanTrial::Iteration> iterations, Nanos PlanTrial::Iteration::* time) {
  const auto middle = iterations.begin() + static_cast<std::ptrdiff_t>((iterations.size() - 1) / 2);
  std::ranges::nth_element(iterations, middle, {}, time);
  return seconds((*middle).*time);
}
double waited(const std::vector<PlanTrial::Iteration>& iterations) {
  return median_seconds(iterations, &PlanTrial::Iteration::waited);
}

}  // namespace

void PlanTrial::enter(Stage stage) {
  stage_ = stage;
  is_first_ = true;
}

bool PlanTrial::loses_to(const std::vector<Iteration>& others) const {
  const double tolerated = kWorse * median_seconds(planned_, &Iteration::duration);
  return waited(planned_) > waited(others) + tolerated;
}

void PlanTrial::plan_begins() {
  if (stage_ != Stage::learning && stage_ != Stage::trial) return;
  planned_.clear();
  enter(Stage::trial);
}

PlanTrial::Verdict PlanTrial::ended(const Iteration& iteration) {
  if (std::exchange(is_first_, false)) return Verdict::go_on;
  switch (stage_) {
    case Stage::learning:
      learning_.push_back(iteration);
      if (learning_.size() > kIterations) learning_.erase(learning_.begin());
      return Verdict::go_on;
    case Stage::trial: {
      planned_.push_back(iteration);
      if (planned_.size() < kIterations) return Verdict::go_on;
      const bool loses = !learning_.empty() && loses_to(learning_);
      enter(loses ? Stage::doubt : Stage::followed);
      return loses ? Verdict::give_up : Verdict::go_on;
    }
    case Stage::doubt:
      without_plan_.push_back(iteration);
      if (without_plan_.size() < kIterations) return Verdict::go_on;
      enter(loses_to(without_plan_) ? Stage::given_up : Stage::followed);
      return stage_ == Stage::followed ? Verdict::take_up_again : Verdict::go_on;
    case Stage::followed:
    case Stage::given_up:
      return Verdict::go_on;
  }
  return Verdict::go_on;
}

}  // namespace spillway
