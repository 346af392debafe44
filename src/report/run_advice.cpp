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
  return {.kind = "fits",
          .sentence = fmt::format("it fits: Spillway is not needed, since tensors took at most {} of {}",
                                  to_text(report.peak.device), to_text(report.device_budget))};
}

// The phase whose iterations have waited most, all of them together. Empty where no iteration has ended.
std::string_view phase_of_most_waits(const RunReport& report) {
  std::map<std::string_view, Nanos> waited;
  for (std::size_t i = 0; i < report.iterations.size(); ++i) waited[phase_of(report, i)] += report.iterations[i].waited;
  const auto most = std::ranges::max_element(waited, {}, [](const auto& phase) { return phase.second; });
  return most == waited.end() ? std::string_view() : most->first;
}

// "iterations that follow the plan wait 0.355 of 3.919 s each (median); the links let none wait less than 0.331 s".
std::string while_planned(const RunReport& report) {
  std::vector<RunReport::Iteration> planned;
  for (const RunReport::Iteration& iteration : report.iterations)
    if (iteration.planned) planned.push_back(iteration);
  const RunReport::PlanTaken& plan = report.plans.back();
  const std::string each = plan.optimizer_steps > 1 ? fmt::format(" of {} optimizer steps", plan.optimizer_steps) : "";
  return fmt::format(
      "iterations that follow the plan wait {:.3f} of {:.3f} s each (median), where the links let those{} "
      "that it was made for wait {:.3f} s at least",
      seconds(median(planned, &RunReport::Iteration::waited).waited),
      seconds(median(planned, &RunReport::Iteration::duration).duration), each, seconds(plan.least_wait));
}

std::string without_plan(const RunReport& report) {
  const auto planned = std::ranges::count_if(report.iterations, &RunReport::Iteration::planned);
  if (planned > 0)
    return fmt::format("{} of {} iterations followed no plan",
                       report.iterations.size() - static_cast<std::size_t>(planned), report.iterations.size());
  if (!report.not_planned.empty()) return "there was no plan: " + report.not_planned;
  if (report.plans.empty()) return fmt::format("{} plans nothing, --policy auto does", report.policy);
  return "the script ended before an iteration had followed the plan";
}

RunReport::Advice waits(const RunReport& report) {
  std::string sentence = fmt::format("some thread waited for memory in {:.3f} of {:.3f} s", seconds(report.stall),
                                     seconds(report.managed));
  if (seconds(report.stall) > kWorthAReason * seconds(report.managed))
    sentence +=
        ", because " + (phase_of_most_waits(report) == "planned" && !report.plans.empty() ? while_planned(report)
                                                                                          : without_plan(report));
  return {.kind = "waits", .sentence = std::move(sentence)};
}

}  // namespace

std::optional<RunReport::Advice> advice_of(const RunReport& report) {
  if (!report.made_tensors || !report.error.empty()) return std::nullopt;  // The error has its own remedy.
  if (has_moved(report)) return waits(report);
  // Unless it ended before it needed more, or others did the work.
  const bool is_whole = report.exit_status == 0 && report.unmanaged_count == 0;
  return is_whole ? std::optional(fits(report)) : std::nullopt;
}

}  // namespace spillway
