#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "hook/session/run_report.h"

namespace spillway {
namespace {

// What gains less than this part is not worth buying.
constexpr double kWorthIt = 0.05;

RunReport::Advice fits(const RunReport& report) {
  return {.kind = "fits",
          .sentence = fmt::format("it fits: Spillway is not needed, since tensors took at most {} of {}",
                                  to_text(report.peak.device), to_text(report.device_budget))};
}

std::string predicted(const RunReport::Prediction& with, const RunReport::Prediction& now) {
  return fmt::format(
      "by the times of the whole run a planned iteration is predicted to take {:.3f} s with {} ({:g} times as much), "
      "and {:.3f} s with what this run had",
      seconds(*with.iteration), to_text(with.device), with.part, seconds(*now.iteration));
}

RunReport::Advice about_memory(const RunReport::Outlook& outlook) {
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
    return {.kind = "memory", .sentence = "more memory would help: " + predicted(*least, now)};
  return {.kind = "enough", .sentence = "more memory would hardly help: " + predicted(outlook.budgets.back(), now)};
}

RunReport::Advice from_outlook(const RunReport::Outlook& outlook) {
  RunReport::Advice memory = about_memory(outlook);
  if (outlook.ssd_time <= outlook.kernels) return memory;
  return {.kind = "ssd",
          .sentence = fmt::format("the SSD is the limit: in each iteration {} must come back from it and {} go to it, "
                                  "which takes at least {:.3f} s at the rates measured here, and the kernels take "
                                  "{:.3f} s; a faster one (--ssd) would help, and {}",
                                  to_text(outlook.ssd_in), to_text(outlook.ssd_out), seconds(outlook.ssd_time),
                                  seconds(outlook.kernels), memory.sentence)};
}

RunReport::Advice waits(const RunReport& report) {
  std::string sentence = fmt::format("some thread waited for memory in {:.3f} of {:.3f} s", seconds(report.stall),
                                     seconds(report.managed));
  if (!report.no_outlook.empty()) sentence += "; what more of it would change cannot be said: " + report.no_outlook;
  return {.kind = "waits", .sentence = std::move(sentence)};
}

}  // namespace

std::optional<RunReport::Advice> advice_of(const RunReport& report) {
  if (!report.made_tensors) return std::nullopt;
  if (!has_moved(report)) {  // Unless it ended before it needed more, or others did the work.
    const bool is_whole = report.exit_status == 0 && report.error.empty() && report.unmanaged_count == 0;
    return is_whole ? std::optional(fits(report)) : std::nullopt;
  }
  const auto& outlook = report.outlook;
  const bool all_run =
      outlook && !outlook->budgets.empty() &&
      std::ranges::all_of(outlook->budgets, [](const auto& budget) { return budget.iteration.has_value(); });
  return all_run ? from_outlook(*outlook) : waits(report);
}

}  // namespace spillway
