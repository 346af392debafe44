#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/median.h"
#include "report/run_report.h"

namespace spillway {
namespace {

template <class Value>
Value median_of(Value IterationFigures::* figure, const std::vector<IterationFigures>& iterations) {
  return median(iterations, figure).*figure;
}

Nanos median_worked(const std::vector<IterationFigures>& iterations) {
  const auto worked = [](const IterationFigures& one) { return excess(one.duration, one.waited); };
  return worked(median(iterations, worked));
}

// What is less of an iteration's operators is not worth a word.
constexpr double kManyOperators = 0.05;

}  // namespace

std::string without_what(const RunReport& report) {
  if (report.plans.empty()) return {};
  std::vector<IterationFigures> planned;  // by the last plan
  const std::uint64_t before = std::max<std::uint64_t>(1, report.plans.back().adopted_at_iteration) - 1;
  for (std::size_t i = before; i < report.iterations.size(); ++i)
    if (report.iterations[i].planned != 0) planned.push_back(report.iterations[i]);
  if (planned.empty()) return {};
  const IterationFigures& usual = median(planned, &IterationFigures::kernels);
  const std::uint64_t others = usual.kernels - std::min(usual.kernels, usual.planned_kernels);
  if (static_cast<double>(others) <= kManyOperators * static_cast<double>(usual.kernels)) return {};
  return fmt::format(", without the {} of {} operators that are no part of it,", others, usual.kernels);
}

Bytes RunReport::ssd_written_per_hour() const {
  if (managed.value == 0) return {};
  // What a broken script leaves may be any number.
  constexpr double kMost = 1e18;
  const double each_hour = static_cast<double>(memory.written.value) / seconds(managed) * 3600;
  return Bytes{static_cast<std::uint64_t>(std::min(each_hour, kMost))};
}

std::string_view to_text(RunPhase phase) {
  constexpr std::array<std::string_view, 4> kTexts{"in memory", "demand paging", "learning", "planned"};
  return kTexts.at(static_cast<std::size_t>(phase));
}

std::vector<RunPhase> phase_of_each(const RunReport& report) {
  std::vector<RunPhase> phases;
  bool has_moved = false;
  for (const IterationFigures& one : report.iterations) {
    has_moved |= one.in + one.out > Bytes{};
    phases.push_back(!has_moved                         ? RunPhase::in_memory
                     : one.planned != 0                 ? RunPhase::planned
                     : !phases.empty() && report.learns ? RunPhase::learning
                                                        : RunPhase::demand_paging);
  }
  return phases;
}

std::vector<RunReport::Phase> phases_of(const RunReport& report) {
  std::vector<std::pair<RunPhase, std::vector<IterationFigures>>> kinds;
  const std::vector<RunPhase> phase_of = phase_of_each(report);
  for (std::size_t i = 0; i < report.iterations.size(); ++i) {
    const RunPhase phase = phase_of[i];
    auto kind = std::ranges::find(kinds, phase, &decltype(kinds)::value_type::first);
    if (kind == kinds.end()) kind = kinds.insert(kind, {phase, {}});
    kind->second.push_back(report.iterations[i]);
  }
  std::vector<RunReport::Phase> phases;
  for (const auto& [phase, iterations] : kinds)
    phases.push_back({.kind = phase,
                      .iterations = iterations.size(),
                      .duration = median_of(&IterationFigures::duration, iterations),
                      .worked = median_worked(iterations),
                      .faults = median_of(&IterationFigures::faults, iterations),
                      .kernels = median_of(&IterationFigures::kernels, iterations)});
  return phases;
}

}  // namespace spillway
