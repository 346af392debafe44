#include <algorithm>
#include <span>

#include "hook/session/run_report.h"

namespace spillway {
namespace {

template <class Value, class Projection>
Value median(std::span<const RunReport::Iteration> iterations, Projection projection) {
  std::vector<Value> values;
  for (const RunReport::Iteration& iteration : iterations) values.push_back(projection(iteration));
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

bool has_moved(const RunReport& report) {
  return std::ranges::any_of(
      kTiers, [&](Tier below) { return below != Tier::device && report.moved(Tier::device, below) > Bytes{}; });
}

std::vector<RunReport::Phase> phases_of(const RunReport& report) {
  std::vector<RunReport::Phase> phases;
  const std::span<const RunReport::Iteration> all(report.iterations);
  const auto add = [&](std::string_view name, std::size_t begin, std::size_t end) {
    end = std::min(end, all.size());
    if (begin >= end) return;
    const auto part = all.subspan(begin, end - begin);
    phases.push_back({.name = std::string(name),
                      .iterations = part.size(),
                      .duration = median<Nanos>(part, [](const auto& iteration) { return iteration.duration; }),
                      .faults = median<std::uint64_t>(part, [](const auto& iteration) { return iteration.faults; })});
  };
  if (!has_moved(report)) {
    add("in memory", 0, all.size());
    return phases;
  }
  const std::size_t planned = report.plans.empty() ? all.size() : report.plans.front().adopted_at_iteration - 1;
  const std::size_t learning = report.learns ? std::min<std::size_t>(1, planned) : planned;
  add("demand paging", 0, learning);
  add("learning", learning, planned);
  std::size_t since = planned;  // what is followed now is
  for (const RunReport::PlanTaken& plan : report.plans) {
    if (plan.given_up_at_iteration == 0) continue;
    add("planned", since, plan.given_up_at_iteration - 1);
    const auto next = std::ranges::find_if(report.plans, [&](const RunReport::PlanTaken& other) {
      return other.adopted_at_iteration >= plan.given_up_at_iteration;
    });
    since = next == report.plans.end() ? all.size() : next->adopted_at_iteration - 1;
    add("learning", plan.given_up_at_iteration - 1, since);
  }
  add("planned", since, all.size());
  return phases;
}

}  // namespace spillway
