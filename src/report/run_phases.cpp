#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include "base/median.h"
#include "report/run_report.h"

namespace spillway {
namespace {

template <class Value>
Value median_of(Value RunReport::Iteration::* figure, const std::vector<RunReport::Iteration>& iterations) {
  return median(iterations, figure).*figure;
}

Nanos median_worked(const std::vector<RunReport::Iteration>& iterations) {
  const auto worked = [](const RunReport::Iteration& one) { return excess(one.duration, one.waited); };
  return worked(median(iterations, worked));
}

// What is less of an iteration's operators is not worth a word.
constexpr double kManyOperators = 0.05;

}  // namespace

std::string without_what(const RunReport& report) {
  if (report.plans.empty()) return {};
  std::vector<RunReport::Iteration> planned;  // by the last plan
  const std::uint64_t first = std::max<std::uint64_t>(1, report.plans.back().adopted_at_iteration) - 1;
  for (const RunReport::Iteration& iteration : report.iterations | std::views::drop(first))
    if (iteration.planned) planned.push_back(iteration);
  if (planned.empty()) return {};
  const RunReport::Iteration& usual = median(planned, &RunReport::Iteration::kernels);
  const std::uint64_t others = usual.kernels - std::min(usual.kernels, usual.planned_kernels);
  if (static_cast<double>(others) <= kManyOperators * static_cast<double>(usual.kernels)) return {};
  return fmt::format(", without the {} of {} operators that are no part of it,", others, usual.kernels);
}

Bytes RunReport::ssd_written_per_hour() const {
  if (managed.value == 0) return {};
  return Bytes{static_cast<std::uint64_t>(static_cast<double>(ssd_written.value) / seconds(managed) * 3600)};
}

bool has_moved(const RunReport& report) {
  return std::ranges::any_of(
      kTiers, [&](Tier below) { return below != Tier::device && report.moved(Tier::device, below) > Bytes{}; });
}

std::string_view phase_of(const RunReport& report, std::size_t iteration) {
  if (!has_moved(report)) return "in memory";
  if (report.iterations[iteration].planned) return "planned";
  return iteration > 0 && report.learns ? "learning" : "demand paging";
}

std::vector<RunReport::Phase> phases_of(const RunReport& report) {
  std::vector<std::pair<std::string_view, std::vector<RunReport::Iteration>>> kinds;
  for (std::size_t i = 0; i < report.iterations.size(); ++i) {
    const std::string_view name = phase_of(report, i);
    auto kind = std::ranges::find(kinds, name, &decltype(kinds)::value_type::first);
    if (kind == kinds.end()) kind = kinds.insert(kind, {name, {}});
    kind->second.push_back(report.iterations[i]);
  }
  std::vector<RunReport::Phase> phases;
  for (const auto& [name, iterations] : kinds)
    phases.push_back({.name = std::string(name),
                      .iterations = iterations.size(),
                      .duration = median_of(&RunReport::Iteration::duration, iterations),
                      .worked = median_worked(iterations),
                      .faults = median_of(&RunReport::Iteration::faults, iterations),
                      .kernels = median_of(&RunReport::Iteration::kernels, iterations)});
  return phases;
}

}  // namespace spillway
