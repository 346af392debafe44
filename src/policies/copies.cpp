#include "policies/copies.h"

#include <algorithm>
#include <map>
#include <span>

#include "analysis/changes.h"
#include "base/check.h"

namespace spillway {

Copies::Copies(const Trace& trace, const Lifetimes& lifetimes, bool host_keeps)
    : host_keeps_(host_keeps), places_(lifetimes.periods.size()) {
  const auto changes = changes_of(trace, lifetimes);
  const std::span periods(lifetimes.periods);
  for (std::size_t begin = 0, end = 0; begin < periods.size(); begin = end) {
    const TensorId tensor = periods[begin].tensor;
    while (end < periods.size() && periods[end].tensor == tensor) ++end;
    // What other tensors leave to this one under their name is taken for new.
    const bool stays = trace[tensor].persistent || trace[tensor].carried_from == tensor;
    const auto& changed = changes[tensor.value];
    std::map<std::size_t, Run> runs;  // by the number of changes before them
    const auto add = [&](bool before_first_change) {
      for (std::size_t period = begin; period < end; ++period) {
        const auto before = std::ranges::upper_bound(changed, periods[period].after) - changed.begin();
        if ((before == 0) != before_first_change) continue;
        // Those before the iteration's first change follow on the last one of the iteration before.
        runs[before == 0 && stays ? changed.size() : static_cast<std::size_t>(before)].periods.push_back(period);
      }
    };
    add(false);
    add(true);
    for (auto& [before, run] : runs) {
      for (std::size_t order = 0; order < run.periods.size(); ++order)
        places_[run.periods[order]] = {runs_.size(), static_cast<std::int64_t>(order)};
      if (stays && changed.empty()) run.first = -1;
      runs_.push_back(std::move(run));
    }
  }
}

std::optional<Tier> Copies::only_tier(std::size_t period) const {
  if (!is_written_anyway(period)) return std::nullopt;
  const Run& run = run_of(period);
  return run.tier || host_keeps_ ? run.tier : Tier::ssd;
}

std::optional<std::size_t> Copies::ahead_of(std::size_t period) const {
  const Run& run = run_of(period);
  const std::int64_t order = places_[period].order;
  if (!run.has_copies || order == 0 || run.first <= order) return std::nullopt;
  return run.periods[static_cast<std::size_t>(order - 1)];
}

Copies::Held Copies::held_with(std::size_t period) const {
  const Run& run = run_of(period);
  const std::int64_t order = places_[period].order;
  const bool is_planned = run.earliest != kNone;
  if (run.first == -1) return {.always = true, .is_held = is_planned};
  if (!is_planned) return {};
  if (order > run.last) return {.before = run.periods[static_cast<std::size_t>(run.last)]};
  if (order < run.earliest) return {.after = run.periods[static_cast<std::size_t>(run.earliest)]};
  return {.is_held = true};
}

std::vector<std::size_t> Copies::plan(std::size_t period, Tier tier) {
  const auto [at, order] = places_[period];
  Run& run = runs_[at];
  if (!run.has_copies) return {};
  if (!keeps(tier)) {
    CHECK(run.first == kNone);
    run.has_copies = false;
    return {};
  }
  CHECK(run.tier.value_or(tier) == tier);
  run.tier = tier;
  run.last = std::max(run.last, order);
  run.earliest = std::min(run.earliest, order);
  if (order >= run.first) return {};
  // All if it is the run's first one, else those up to the one that was the first.
  const std::size_t until = run.first == kNone ? run.periods.size() : static_cast<std::size_t>(run.first) + 1;
  const std::size_t from = run.first == kNone ? 0 : static_cast<std::size_t>(order) + 1;
  run.first = order;
  return {run.periods.begin() + static_cast<std::ptrdiff_t>(from),
          run.periods.begin() + static_cast<std::ptrdiff_t>(until)};
}

bool Copies::is_worth_keeping(std::size_t period, Tier tier) const {
  const Run& run = run_of(period);
  return run.tier == tier && (run.first == -1 || places_[period].order < run.last);
}

}  // namespace spillway
