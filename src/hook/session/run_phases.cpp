#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "hook/session/run_report.h"

namespace spillway {
namespace {

template <class Value>
Value median(const std::vector<RunReport::Iteration>& iterations, Value RunReport::Iteration::* figure) {
  std::vector<Value> values;
  for (const RunReport::Iteration& iteration : iterations) values.push_back(iteration.*figure);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

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
                      .duration = median(iterations, &RunReport::Iteration::duration),
                      .faults = median(iterations, &RunReport::Iteration::faults)});
  return phases;
}

}  // namespace spillway
