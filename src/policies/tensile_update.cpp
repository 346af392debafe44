#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "policies/policies.h"
#include "policies/tensile.h"

namespace spillway {
namespace {

// Section IV-E has both without values; those of the authors' code.
constexpr double kMostChange = 0.3;  // |s' - s| / s
constexpr double kNewest = 0.9;      // of the moving average

}  // namespace

std::optional<Reckoned> reckon_again(const Reckoned& reckoned, const Trace& measured) {
  CHECK(reckoned.durations.size() == measured.kernels.size());
  if (reckoned.predicted) return reckoned_from(measured);
  double before = 0, now = 0;
  for (std::size_t at = 0; at < measured.kernels.size(); ++at) {
    before += static_cast<double>(reckoned.durations[at].value);
    now += static_cast<double>(measured.kernels[at].duration.value);
  }
  if (std::abs(now - before) <= kMostChange * before) return std::nullopt;
  Reckoned again;
  for (std::size_t at = 0; at < measured.kernels.size(); ++at)
    again.durations.push_back(
        {static_cast<std::uint64_t>(std::llround(kNewest * static_cast<double>(measured.kernels[at].duration.value) +
                                                 (1 - kNewest) * static_cast<double>(reckoned.durations[at].value)))});
  return again;
}

std::optional<Plan> revise_tensile(const PastIteration& iteration, const Plan& plan) {
  if (!plan.reckoned) return std::nullopt;  // It came from a file.
  auto reckoned = reckon_again(*plan.reckoned, iteration.trace);
  if (!reckoned) return std::nullopt;
  Trace as_reckoned = iteration.trace;
  for (std::size_t at = 0; at < reckoned->durations.size(); ++at)
    as_reckoned.kernels[at].duration = reckoned->durations[at];
  Plan made = plan_tensile({as_reckoned, iteration.lifetimes, iteration.machine, iteration.parameters});
  Plan revised = plan;
  revised.evictions = std::move(made.evictions);
  revised.prefetches = std::move(made.prefetches);
  revised.recomputations = std::move(made.recomputations);
  revised.reckoned = std::move(reckoned);
  return revised;
}

}  // namespace spillway
