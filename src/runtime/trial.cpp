#include "runtime/trial.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

// Of an even number the lower one of the two in the middle: the first ones to be learned from are long.
double median_seconds(std::vector<TimedIteration> iterations, Nanos TimedIteration::* time) {
  CHECK(!iterations.empty());
  const auto middle = iterations.begin() + static_cast<std::ptrdiff_t>((iterations.size() - 1) / 2);
  std::ranges::nth_element(iterations, middle, {}, time);
  return seconds((*middle).*time);
}
double waited(const std::vector<TimedIteration>& iterations) {
  return median_seconds(iterations, &TimedIteration::waited);
}

}  // namespace

void Trial::enter(Stage stage) {
  stage_ = stage;
  is_first_ = true;
  step_ends_.begin_anew();
}

void Trial::forget() {
  stage_ = Stage::learning;
  is_first_ = false;
  learning_.clear();
  planned_.clear();
}

bool Trial::loses() const {
  const double tolerated = kWorse * median_seconds(planned_, &TimedIteration::duration);
  return !learning_.empty() && waited(planned_) > waited(learning_) + tolerated;
}

void Trial::plan_begins(bool given) {
  if (given || stage_ == Stage::followed) return enter(Stage::followed);
  CHECK(stage_ == Stage::learning || stage_ == Stage::trial);
  planned_.clear();
  enter(Stage::trial);
}

void Trial::none_is_followed() {
  forget();
  enter(Stage::learning);
}

bool Trial::step_ended(const Recorder::Progress& progress, Nanos at, Nanos waited) {
  step_ends_.add(at, waited);
  if (progress.iteration == 0) return false;
  if (std::exchange(iteration_, progress.iteration) != progress.iteration) forget();
  CHECK(progress.steps_each > 0);
  if (progress.steps_done != 0u) return false;  // That was not its last one.
  const auto iteration = step_ends_.iteration(progress.steps_each);
  return iteration && ended(*iteration);
}

bool Trial::ended(const TimedIteration& iteration) {
  if (std::exchange(is_first_, false)) return false;
  if (stage_ == Stage::learning) {
    learning_.push_back(iteration);
    if (learning_.size() > kIterations) learning_.erase(learning_.begin());
  } else if (stage_ == Stage::trial) {
    planned_.push_back(iteration);
    if (planned_.size() == kIterations) enter(loses() ? Stage::dropped : Stage::followed);
    return is_dropped();
  }
  return false;
}

}  // namespace spillway
