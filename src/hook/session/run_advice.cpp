#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/text.h"
#include "hook/session/run_report.h"

namespace spillway {
namespace {

// What gains less than this part is not worth buying.
constexpr double kWorthIt = 0.05;

// Planned iterations that move so many times as much as was predicted show that simulation knows too little of this
// run: threads beside the training, say, or kernels that go through their tensors more than once. So do those that take
// so many times as long, if it is memory that they wait for: any other program on the machine changes times, too.
constexpr double kFarOff = 1.5;
constexpr std::size_t kEnoughIterations = 3;

// Predictions closer than that need no word beside them.
constexpr double kAbout = 0.1;

// Where waits that were not predicted take such a part of the time, more memory might save them.
constexpr double kMuchWaiting = 0.1;

RunReport::Advice fits(const RunReport& report) {
  return {.kind = "fits",
          .sentence = fmt::format("it fits: Spillway is not needed, since tensors took at most {} of {}",
                                  to_text(report.peak.device), to_text(report.device_budget))};
}

// Whether that ended it only the script's own error says: many catch it, and go on with less.
RunReport::Advice room(const RunReport& report) {
  return {
      .kind = "room",
      .sentence = fmt::format(
          "a tensor of {} found no room in {} of device memory, {} of host memory and what the SSD could take; if "
          "that ended the script, raise --device-memory or --host-memory, or give it an SSD with more space (--ssd, "
          "--ssd-capacity)",
          to_text(report.refused), to_text(report.device_budget), to_text(report.host_budget))};
}

// For iterations that are more than what the table calls one.
std::string of_steps(std::uint64_t steps) { return steps > 1 ? fmt::format(" of {} optimizer steps", steps) : ""; }

RunReport::Advice waits(const RunReport& report, const std::string& no_outlook) {
  std::string sentence = fmt::format("some thread waited for memory in {:.3f} of {:.3f} s", seconds(report.stall),
                                     seconds(report.managed));
  // The table says so just above.
  const bool is_known = no_outlook == report.not_planned;
  if (!no_outlook.empty())
    sentence += "; what more of it would change cannot be said" +
                (is_known ? std::string(", for the same reason as there is no plan") : ": " + no_outlook);
  return {.kind = "waits", .sentence = std::move(sentence)};
}

// Iterations one after the other, together as many steps as what was predicted.
struct Whole {
  Bytes moved;
  Nanos duration, waited;
  std::uint64_t kernels = 0;
};

template <typename Iterations, typename Counts>
std::vector<Whole> whole_iterations(const Iterations& iterations, std::uint64_t steps_each, Counts counts) {
  std::vector<Whole> all;
  Whole one;
  std::uint64_t steps = 0;
  for (const RunReport::Iteration& iteration : iterations) {
    if (!counts(iteration)) {
      one = {};
      steps = 0;
      continue;
    }
    one = {.moved = one.moved + iteration.in + iteration.out,
           .duration = one.duration + iteration.duration,
           .waited = one.waited + iteration.waited,
           .kernels = one.kernels + iteration.kernels};
    steps += iteration.steps;
    if (steps < steps_each) continue;
    all.push_back(std::exchange(one, {}));
    steps = 0;
  }
  return all;
}

// Of one plan, whose first iteration begins with what the one before left behind.
std::vector<Whole> followed_iterations(const RunReport& report, std::size_t which) {
  const RunReport::PlanTaken& plan = report.plans[which];
  const std::size_t end = which + 1 < report.plans.size()
                              ? std::max<std::size_t>(report.plans[which + 1].adopted_at_iteration, 1) - 1
                              : report.iterations.size();
  return whole_iterations(report.iterations | std::views::take(end) | std::views::drop(plan.adopted_at_iteration),
                          plan.optimizer_steps,
                          [](const RunReport::Iteration& iteration) { return iteration.planned; });
}

Bytes median_moved(const std::vector<Whole>& all) {
  std::vector<Bytes> moved;
  for (const Whole& one : all) moved.push_back(one.moved);
  return median(std::move(moved));
}

Nanos median_time(const std::vector<Whole>& all, Nanos Whole::* time) {
  std::vector<Nanos> times;
  for (const Whole& one : all) times.push_back(one.*time);
  return median(std::move(times));
}

// Where no plan was better or possible, those of the later half: of those of equally many operators the ones of the
// fewest, for others have what no prediction knows of.
std::vector<Whole> paged_iterations(const RunReport& report) {
  const auto half = report.iterations | std::views::drop(report.iterations.size() / 2);
  std::map<std::uint64_t, std::vector<Whole>> by_kernels;
  for (const Whole& one : whole_iterations(half, report.recorded_steps, [](const auto&) { return true; }))
    by_kernels[one.kernels].push_back(one);
  const auto fewest =
      std::ranges::find_if(by_kernels, [](const auto& equal) { return equal.second.size() >= kEnoughIterations; });
  return fewest == by_kernels.end() ? std::vector<Whole>{} : std::move(fewest->second);
}

// What shows whether a prediction was right.
struct PredictedIterations {
  std::string name;
  const RunReport::PlanTaken* plan;  // that they followed, if any
  std::vector<Whole> all;
};

// Whether none was followed, and the predictions are for iterations without one.
bool goes_without_plan(const RunReport& report) {
  return report.plans.empty() && (report.not_planned == kPagingIsAsGood || !report.has_optimizer);
}

// Nothing if there are too few.
std::optional<PredictedIterations> predicted_iterations(const RunReport& report) {
  if (report.plans.empty()) {
    if (!goes_without_plan(report)) return std::nullopt;
    std::vector<Whole> paged = paged_iterations(report);
    if (paged.empty()) return std::nullopt;
    return PredictedIterations{"iterations" + of_steps(report.recorded_steps), nullptr, std::move(paged)};
  }
  // What no plan knows of moves bytes, too, and the predictions are told without it.
  if (!without_what(report).empty()) return std::nullopt;
  std::size_t which = report.plans.size() - 1;  // the last plan that has been followed for long enough
  std::vector<Whole> followed = followed_iterations(report, which);
  while (followed.size() < kEnoughIterations && which > 0) followed = followed_iterations(report, --which);
  if (followed.size() < kEnoughIterations) return std::nullopt;
  const RunReport::PlanTaken& plan = report.plans[which];
  return PredictedIterations{"planned iterations" + of_steps(plan.optimizer_steps), &plan, std::move(followed)};
}

// How long the recorded iteration took, where that is not what is predicted for it.
std::string unlike_measured(const RunReport& report, Nanos predicted) {
  const auto known = predicted_iterations(report);
  if (!known || (known->plan && known->plan->iteration != report.recorded_iteration)) return {};
  const double took = seconds(median_time(known->all, &Whole::duration));
  if (std::abs(took - seconds(predicted)) <= kAbout * took) return {};
  return fmt::format(", where it took {:.3f} s", took);
}

std::string predicted(const RunReport& report, const RunReport::Prediction& with) {
  const RunReport::Prediction& now = report.outlook->budgets.front();
  return fmt::format(
      "by the times of the whole run {} iteration{}{} is predicted to take {:.3f} s with {} ({:g} times as much), and "
      "{:.3f} s with what this run had{}",
      goes_without_plan(report) ? "an" : "a planned", of_steps(report.recorded_steps), without_what(report),
      seconds(*with.iteration), to_text(with.device), with.part, seconds(*now.iteration),
      unlike_measured(report, *now.iteration));
}

// Since when plans for an iteration are followed, or none is any more: after so many steps and the first iteration of
// that kind, which has to do with what was before.
std::size_t settled_after(const RunReport& report) {
  std::uint64_t since = 0;
  const RunReport::PlanTaken* followed = nullptr;
  for (const RunReport::PlanTaken& plan : report.plans) {
    const std::uint64_t rest_of_first = std::max<std::uint64_t>(plan.optimizer_steps, 1) - 1;
    if (followed == nullptr || followed->iteration != plan.iteration) since = plan.adopted_at_iteration + rest_of_first;
    followed = plan.given_up_at_iteration == 0 ? &plan : nullptr;
    if (followed == nullptr) since = plan.given_up_at_iteration + rest_of_first;
  }
  return since;
}

// Of the recorded iteration, by the plan that is followed if that says more.
Nanos predicted_wait(const RunReport& report) {
  const Nanos now = excess(*report.outlook->budgets.front().iteration, report.outlook->kernels);
  const bool is_followed = !report.plans.empty() && report.plans.back().given_up_at_iteration == 0;
  return is_followed ? std::max(now, report.plans.back().predicted_wait) : now;
}

// Predictions are of planned iterations, or of those that need no plan.
bool ended_before_a_plan(const RunReport& report) {
  if (report.plans.empty()) return !goes_without_plan(report);
  return report.plans.back().iteration != report.recorded_iteration &&
         report.needs_no_plan != report.recorded_iteration;
}

// Of the later half, or since something else is followed. Empty where the prediction explains their waits: what does
// not repeat itself in each iteration (a copy of the weights in every second one, say) it knows nothing of.
std::string waits_unpredicted(const RunReport& report) {
  if (ended_before_a_plan(report)) return {};
  const std::size_t first = std::max(report.iterations.size() / 2, settled_after(report));
  const auto all = whole_iterations(report.iterations | std::views::drop(first), report.recorded_steps,
                                    [](const auto&) { return true; });
  if (all.size() < kEnoughIterations) return {};
  double duration = 0, waited = 0;  // on average
  for (const Whole& one : all) {
    duration += seconds(one.duration) / static_cast<double>(all.size());
    waited += seconds(one.waited) / static_cast<double>(all.size());
  }
  const double expected = seconds(predicted_wait(report));
  if (waited - expected <= kMuchWaiting * duration) return {};
  return fmt::format(
      "the last {} iterations{} took {:.3f} s each on average, and waited for memory in {:.3f} s of it, where {:.3f} s "
      "were predicted of what repeats itself",
      all.size(), of_steps(report.recorded_steps), duration, waited, expected);
}

RunReport::Advice about_memory(const RunReport& report) {
  const RunReport::Outlook& outlook = *report.outlook;
  const RunReport::Prediction& now = outlook.budgets.front();
  const auto shortest = std::ranges::min_element(outlook.budgets, {},
                                                 [](const RunReport::Prediction& budget) { return *budget.iteration; });
  // A little more than the shortest is as good, if it gains as much as is worth it.
  const double worth_it = seconds(*now.iteration) / (1 + kWorthIt);
  const double as_good = seconds(*shortest->iteration) * (1 + kWorthIt);
  const auto least = std::ranges::find_if(outlook.budgets, [&](const RunReport::Prediction& budget) {
    return seconds(*budget.iteration) <= std::min(worth_it, as_good);
  });
  if (least != outlook.budgets.end())
    return {.kind = "memory", .sentence = "more memory would help: " + predicted(report, *least)};
  if (const std::string more = waits_unpredicted(report); !more.empty()) return waits(report, more);
  return {.kind = "enough", .sentence = "more memory would hardly help: " + predicted(report, outlook.budgets.back())};
}

RunReport::Advice from_outlook(const RunReport& report) {
  const RunReport::Outlook& outlook = *report.outlook;
  RunReport::Advice memory = about_memory(report);
  if (outlook.ssd_time <= outlook.kernels) return memory;
  return {.kind = "ssd",
          .sentence = fmt::format("the SSD is the limit: in each iteration {} must come back from it and {} go to it, "
                                  "which takes at least {:.3f} s at the rates measured here, and the kernels take "
                                  "{:.3f} s; a faster one (--ssd) would help, and {}",
                                  to_text(outlook.ssd_in), to_text(outlook.ssd_out), seconds(outlook.ssd_time),
                                  seconds(outlook.kernels), memory.sentence)};
}

std::string of_largest_kernel(const RunReport& report) {
  const RunReport::Outlook& outlook = *report.outlook;
  if (outlook.largest_bytes * 10 < report.device_budget * 9) return {};
  return fmt::format("; {} uses {} at a time, and goes through what has no room in {} by page faults",
                     outlook.largest_kernel, to_text(outlook.largest_bytes), to_text(report.device_budget));
}

// Empty where they take about as long as expected, or something else than memory takes the time.
std::string far_off_in_time(const PredictedIterations& known, const RunReport& report) {
  const Nanos expected = known.plan ? known.plan->predicted : *report.outlook->budgets.front().iteration;
  const Nanos duration = median_time(known.all, &Whole::duration), waited = median_time(known.all, &Whole::waited);
  if (seconds(duration) <= kFarOff * seconds(expected)) return {};
  if (2 * seconds(waited) <= seconds(duration) - seconds(expected)) return {};
  return fmt::format("{} took {:.3f} s where {:.3f} s were predicted, and waited for memory in {:.3f} s of it{}",
                     known.name, seconds(duration), seconds(expected), seconds(waited), of_largest_kernel(report));
}

// Empty where what was simulated is about what the run did.
std::string why_far_off(const RunReport& report) {
  const auto known = predicted_iterations(report);
  if (!known) return {};
  const Bytes moved = median_moved(known->all);
  const Bytes predicted = known->plan ? known->plan->predicted_in + known->plan->predicted_out : moved;
  if (static_cast<double>(moved.value) > kFarOff * static_cast<double>(predicted.value))
    return fmt::format("{} moved {} where {} were predicted{}", known->name, to_text(moved), to_text(predicted),
                       of_largest_kernel(report));
  return far_off_in_time(*known, report);
}

}  // namespace

std::optional<RunReport::Advice> advice_of(const RunReport& report) {
  if (!report.made_tensors || !report.error.empty()) return std::nullopt;  // The error has its own remedy.
  if (report.exit_status != 0 && report.refused > Bytes{}) return room(report);
  if (!has_moved(report)) {  // Unless it ended before it needed more, or others did the work.
    const bool is_whole = report.exit_status == 0 && report.unmanaged_count == 0;
    return is_whole ? std::optional(fits(report)) : std::nullopt;
  }
  const auto& outlook = report.outlook;
  if (!outlook || outlook->budgets.empty()) return waits(report, report.no_outlook);
  if (!std::ranges::all_of(outlook->budgets, [](const auto& budget) { return budget.iteration.has_value(); }))
    return waits(report, report.not_planned.starts_with(kPlanningFailed)
                             ? report.not_planned
                             : "no iteration can be simulated in what this run had; raise --device-memory (or "
                               "--ssd-capacity)");
  const std::string far_off = why_far_off(report);
  return far_off.empty() ? from_outlook(report) : waits(report, far_off);
}

}  // namespace spillway
