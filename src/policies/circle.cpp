#include "policies/circle.h"

#include <algorithm>
#include <tuple>

#include "plan/validate.h"

namespace spillway {

Circle::Circle(const Problem& problem)
    : trace_(problem.trace),
      lifetimes_(problem.lifetimes),
      device_(problem.machine.device.memory),
      kernels_(static_cast<std::uint32_t>(trace_.kernels.size())) {}

std::uint32_t Circle::length(std::size_t index) const { return length_of(period(index), kernels_); }

bool Circle::plannable(std::size_t index) const {
  const InactivePeriod& candidate = period(index);
  const Tensor& tensor = trace_[candidate.tensor];
  const bool same = !candidate.wraps || candidate.last || tensor.persistent || tensor.carried_from == candidate.tensor;
  return same && tensor.bytes >= kLeastMovedBytes && length(index) >= 2;
}

Stretch Circle::stretch(std::size_t index, std::uint32_t from, std::uint32_t to) const {
  return {(period(index).after.value + from) % kernels_, to > from ? to - from : 0};
}

void Circle::add(Pressure& pressure, Stretch where, std::int64_t amount) const {
  both_parts(where, [&](std::uint32_t begin, std::uint32_t end) { pressure.add(begin, end, amount); });
}

bool Circle::has_room(const Pressure& tier, Stretch where, Bytes size) const {
  bool room = true;
  both_parts(where, [&](std::uint32_t begin, std::uint32_t end) {
    room &= tier.max(begin, end) + static_cast<std::int64_t>(size.value) <= 0;
  });
  return room;
}

std::vector<std::int64_t> Circle::excess() const {
  std::vector<std::int64_t> result = empty(device_);
  for (std::size_t kernel = 0; kernel < result.size(); ++kernel)
    result[kernel] += static_cast<std::int64_t>(lifetimes_.live[kernel].value);
  return result;
}

std::vector<std::int64_t> Circle::empty(Bytes capacity) const {
  return std::vector<std::int64_t>(kernels_, -static_cast<std::int64_t>(capacity.value));
}

std::vector<std::size_t> Circle::prefetch_eagerly(std::span<Absence> absences, Pressure& excess) const {
  std::vector<std::size_t> order;
  for (std::size_t at = 0; at < absences.size(); ++at)
    if (!period(absences[at].period).last) order.push_back(at);
  std::ranges::sort(order, {}, [&](std::size_t at) {
    const Absence& absence = absences[at];
    return std::tuple(stretch(absence.period, absence.returns, 0).begin, length(absence.period) - absence.returns,
                      period(absence.period).tensor);
  });
  for (const std::size_t at : order) {
    Absence& absence = absences[at];
    const auto size = static_cast<std::int64_t>(bytes(absence.period).value);
    const Stretch gained = stretch(absence.period, absence.left + 1, absence.returns);
    const std::uint32_t first = std::min(gained.count, kernels_ - gained.begin);
    // From the end back: the part behind the iteration's end first, if there is one.
    const std::uint32_t behind = gained.count - first;
    const std::uint32_t stop = excess.run_before(0, behind, -size);
    std::uint32_t free = behind - stop;
    if (stop == 0) free += gained.begin + first - excess.run_before(gained.begin, gained.begin + first, -size);
    add(excess, stretch(absence.period, absence.returns - free, absence.returns), size);
    absence.returns -= free;
  }
  return order;
}

Plan Circle::plan(std::span<const Absence> absences, std::span<const std::size_t> prefetch_order,
                  const Copies* copies) const {
  Plan plan;
  for (const Absence& absence : absences)
    plan.evictions.push_back({period(absence.period).tensor, period(absence.period).after, absence.tier});
  for (const std::size_t at : prefetch_order) {
    const Absence& absence = absences[at];
    plan.prefetches.push_back(
        {.tensor = period(absence.period).tensor,
         .at = {stretch(absence.period, absence.returns, 0).begin},
         .keeps_copy = copies != nullptr && copies->is_worth_keeping(absence.period, absence.tier)});
  }
  std::ranges::stable_sort(plan.evictions, {}, &Eviction::after);
  std::ranges::stable_sort(plan.prefetches, {}, &Prefetch::at);
  return plan;
}

}  // namespace spillway
