#include "hook/planning/plan_trial.h"

#include <algorithm>
#include <utility>

namespace spillway {
namespace {

Nanos median(std::vector<Nanos> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void PlanTrial::plan_begins() {
  if (stage_ != Stage::learning) return;
  if (last_.number != 0) judge(std::exchange(last_, {}));
  stage_ = Stage::trial;
  to_pass_over_ = 1;
}

// The last one is judged when the next one has ended: only then it is over for sure.
PlanTrial::Verdict PlanTrial::ended(const Iteration& iteration) {
  const Iteration over = std::exchange(last_, iteration);
  return over.number == iteration.number || over.number == 0 ? Verdict::go_on : judge(over);
}

PlanTrial::Verdict PlanTrial::judge(const Iteration& iteration) {
  if (stage_ == Stage::followed || stage_ == Stage::given_up) return Verdict::go_on;
  if (to_pass_over_ > 0) {
    --to_pass_over_;
    return Verdict::go_on;
  }
  std::vector<Nanos>& waits = stage_ == Stage::learning ? learning_ : stage_ == Stage::trial ? planned_ : without_plan_;
  waits.push_back(iteration.waited);
  if (stage_ == Stage::learning) {
    if (waits.size() > kIterations) waits.erase(waits.begin());
    return Verdict::go_on;
  }
  if (waits.size() < kIterations) return Verdict::go_on;
  if (stage_ == Stage::trial) {
    const bool loses = !learning_.empty() &&
                       seconds(median(planned_)) > seconds(median(learning_)) + kWorse * seconds(iteration.duration);
    stage_ = loses ? Stage::doubt : Stage::followed;
    to_pass_over_ = 2;  // One with the plan has ended already, and the next one finds what the plan has left.
    return loses ? Verdict::give_up : Verdict::go_on;
  }
  stage_ = median(without_plan_) < median(planned_) ? Stage::given_up : Stage::followed;
  return stage_ == Stage::followed ? Verdict::take_up_again : Verdict::go_on;
}

}  // namespace spillway
