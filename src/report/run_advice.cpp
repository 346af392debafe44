#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/median.h"
#include "base/text.h"
#include "report/run_report.h"

namespace spillway {
namespace {

// Waits that are less than this part of a run need no reason.
constexpr double kWorthAReason = 0.01;

RunReport::Advice fits(const RunReport& report) {
  return {.kind = RunReport::Advice::Kind::fits,
          .sentence = fmt::format("it fits: Spillway is not needed, since tensors took at most {} of {}",
                                  to_text(report.memory.peak.device), to_text(report.device_budget))};
}

// Whether those of no other phase have waited for longer, all of them together.
bool planned_wait_most(const RunReport& report) {
  std::map<RunPhase, Nanos> waited;
  const std::vector<RunPhase> phase_of = phase_of_each(report);
  for (std::size_t i = 0; i < report.iterations.size(); ++i) waited[phase_of[i]] += report.iterations[i].waited;
  const auto most = std::ranges::max_element(waited, {}, [](const auto& phase) { return phase.second; });
  return most != waited.end() && most->first == RunPhase::planned;
}

// "iterations that follow the plan wait 0.355 of 3.919 s each (median); the links let none wait less than 0.331 s".
std::string while_planned(const RunReport& report) {
  std::vector<IterationFigures> planned;
  for (const IterationFigures& iteration : report.iterations)
    if (iteration.planned != 0) planned.push_back(iteration);
  const PlanFigures& plan = report.plans.back();
  const std::string each = plan.optimizer_steps > 1 ? fmt::format(" of {} optimizer steps", plan.optimizer_steps) : "";
  return fmt::format(
      "iterations that follow the plan wait {:.3f} of {:.3f} s each (median), where the links let those{} "
      "that it was made for wait {:.3f} s at least",
      seconds(median(planned, &IterationFigures::waited).waited),
      seconds(median(planned, &IterationFigures::duration).duration), each, seconds(plan.least_wait));
}

std::string without_plan(const RunReport& report) {
  const auto planned = std::ranges::count_if(report.iterations, &IterationFigures::planned);
  if (planned > 0)
    return fmt::format("{} of {} iterations followed no plan",
                       report.iterations.size() - static_cast<std::size_t>(planned), report.iterations.size());
  if (report.no_plan) return "there was no plan: " + why_no_plan(report);
  if (report.plans.empty()) return fmt::format("{} plans nothing, --policy auto does", report.policy);
  return "the script ended before an iteration had followed the plan";
}

RunReport::Advice waits(const RunReport& report) {
  std::string sentence = fmt::format("some thread waited for memory in {:.3f} of {:.3f} s",
                                     seconds(report.memory.stall), seconds(report.managed));
  if (seconds(report.memory.stall) > kWorthAReason * seconds(report.managed))
    sentence += ", because " +
                (planned_wait_most(report) && !report.plans.empty() ? while_planned(report) : without_plan(report));
  return {.kind = RunReport::Advice::Kind::waits, .sentence = std::move(sentence)};
}

}  // namespace

std::string why_no_plan(const RunReport& report) {
  if (!report.no_plan) return {};
  std::string detail(report.no_plan->detail.view());
  switch (report.no_plan->reason) {
    case NoPlan::ended:
      break;
    case NoPlan::not_measured:
      return "this machine could not be measured";
    case NoPlan::failed:
      return "planning failed: " + detail;
    case NoPlan::no_optimizer:
      return "the script made no step of a torch.optim optimizer, by which iterations are told apart";
    case NoPlan::no_iteration:
      return detail;
    case NoPlan::not_followed:
      return "the script ended before it followed the one that was made";
    case NoPlan::not_needed:
      return "to go on without one was predicted to be as good";
    case NoPlan::not_made:
      return "the script ended before one was made";
  }
  return fmt::format("the script ended with status {}, before one was followed", report.exit_status);
}

std::optional<RunReport::Advice> advice_of(const RunReport& report) {
  if (!report.made_tensors || !report.error.empty()) return std::nullopt;  // The error has its own remedy.
  if (has_moved(report.memory)) return waits(report);
  // Unless it ended before it needed more, or others did the work.
  const bool is_whole = report.exit_status == 0 && report.unmanaged_count == 0;
  return is_whole ? std::optional(fits(report)) : std::nullopt;
}

}  // namespace spillway
