#include "runtime/run_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "analysis/least_moves.h"
#include "analysis/least_wait.h"
#include "base/check.h"
#include "base/text.h"
#include "machines/sim/simulate.h"
#include "plan/placement.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "runtime/tensor_heap.h"
#include "trace/validate.h"

namespace spillway {
namespace {

// Moving takes time from kernels that do not wait for it, too: the disk's work, the memory's bandwidth, the run loop's
// time on a core; no simulation knows it. Nothing to a third of what the bytes take on their ways has been measured;
// with half, plans are as good that took as long within the spread of measuring them (docs/measurements.md).
constexpr double kPriceOfMoving = 0.5;
// Plans whose costs differ by less than this part are as good. Predictions err by more, but that is in the times of
// kernels, which are the same for all plans.
constexpr double kAsGood = 0.005;

Bytes all_moved(const SimulationResult& result) {
  Bytes sum;
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to) sum += result.moved(from, to);
  return sum;
}

struct Best {
  Plan plan;
  bool is_planned;   // false: nothing is, under its policy
  Bytes counted_on;  // of the device's memory
  SimulationResult result;
};

// In seconds.
double cost(const SimulationResult& result, const MachineModel& machine) {
  const auto way = [](Bytes bytes, BytesPerSecond rate) { return seconds(transfer_time(bytes, rate)); };
  const double ways =
      way(result.moved(Tier::host, Tier::device), machine.link.to_device) +
      way(result.moved(Tier::device, Tier::host), machine.link.from_device) +
      way(result.moved(Tier::ssd, Tier::device), std::min(machine.link.to_device, machine.ssd_read())) +
      way(result.moved(Tier::device, Tier::ssd), std::min(machine.link.from_device, machine.ssd_write()));
  return seconds(result.iteration) + kPriceOfMoving * ways;
}

// No run follows what was simulated: a plan that moves nothing, though something moves.
bool is_idle(const Best& one) { return one.is_planned && one.plan.moves() == 0 && all_moved(one.result) > Bytes{}; }

// Of those as good as the cheapest the one that moves least; nothing if there is none.
std::optional<Best> best_of(std::vector<Best> candidates, const MachineModel& machine) {
  if (candidates.empty()) return std::nullopt;
  for (const Best& candidate : candidates) CHECK(candidate.result.feasible);
  if (!std::ranges::all_of(candidates, is_idle)) std::erase_if(candidates, is_idle);
  const auto cost_of = [&](const Best& candidate) { return cost(candidate.result, machine); };
  const double least = std::ranges::min(candidates | std::views::transform(cost_of));
  std::erase_if(candidates, [&](const Best& one) { return cost_of(one) > (1 + kAsGood) * least; });
  return *std::ranges::min_element(candidates, {}, [](const Best& one) { return all_moved(one.result); });
}

// What plans are made for, and what the run does: that has large tensors, too, that are replaced while their successors
// live. Where those will lie nobody knows, so no plan moves them.
struct RunIteration {
  const Trace& rows;
  Lifetimes row_lifetimes;
  Trace all;
  Lifetimes lifetimes;
  Bytes replaced;  // in all
};
RunIteration run_iteration(const Trace& rows, const Trace& trace) {
  const std::vector<TensorId> replaced = replaced_tensors(trace, TensorHeap::kLarge);
  Bytes bytes;
  for (const TensorId tensor : replaced) bytes += trace[tensor].bytes;
  Trace all = with_tensors(rows, trace, replaced);
  Lifetimes lifetimes = analyse_lifetimes(all);
  return {rows, analyse_lifetimes(rows), std::move(all), std::move(lifetimes), bytes};
}

// As the run uses its memory.
Result<SimulationResult> simulate_run(const RunIteration& iteration, const PlanningInput& input, PolicyTraits traits,
                                      const Plan* plan) {
  traits.keeps_copies |= input.policy.without_plan->traits.keeps_copies;  // The run does, whatever plan it follows.
  MachineModel machine = input.machine;
  machine.device.memory += spare_memory(input.block_bytes);
  return simulate(iteration.all, iteration.lifetimes, machine, traits, plan, Foreknowledge::iteration);
}

// Nothing if no plan is possible: what it may count on is less than any run needs, or the SSD cannot take the rest.
Result<std::optional<Best>> candidate_of(const Policy& policy, Bytes counted_on, const RunIteration& iteration,
                                         const PlanningInput& input) {
  if (counted_on == Bytes{}) return std::nullopt;
  MachineModel machine = input.machine;
  machine.device.memory = counted_on;
  Plan plan;
  if (policy.plan) plan = policy.plan({iteration.rows, iteration.row_lifetimes, machine, policy.traits.parameters});
  plan.policy = policy.name;
  TRY_VOID(validate_plan(plan, iteration.rows, plan.trace_hash, iteration.row_lifetimes, machine,
                         policy.traits.uses_host, "plan"));
  TRY(const SimulationResult result, simulate_run(iteration, input, policy.traits, policy.plan ? &plan : nullptr));
  if (!result.feasible) return std::nullopt;
  plan.predicted_seconds = seconds(result.iteration);
  return Best{std::move(plan), policy.plan != nullptr, counted_on, result};
}

// What a plan may count on: all but half of what tensors take that are replaced, for those are alive for a part of the
// iteration only, and half of all at least. A little has room in the spare blocks.
Bytes memory_for_plans(const RunIteration& iteration, const PlanningInput& input) {
  const Bytes all = input.machine.device.memory, replaced = iteration.replaced;
  return replaced <= spare_memory(input.block_bytes) ? all : excess(all, Bytes{std::min(replaced, all).value / 2});
}

std::unexpected<Error> too_little_for(std::string_view whom, const std::string& refused, const PlanningInput& input) {
  const Bytes device = input.machine.device.memory;
  const std::string why =
      device == Bytes{}
          ? fmt::format(
                "what no plan moves (small tensors, and some blocks of {} that stay free) takes {} of the device's {}; "
                "raise --device-memory to {}MiB at least{}",
                to_text(input.block_bytes), to_text(input.unplanned), to_text(input.budget),
                (input.unplanned + input.block_bytes).value >> 20,
                input.block_bytes > kBlockBytes ? ", or give a smaller --block-size" : "")
          : fmt::format(
                "what a plan may count on is too little for {}: {} of the device's {}, and {} on "
                "the SSD; raise --device-memory or --ssd-capacity",
                whom, to_text(device), to_text(input.budget), to_text(input.machine.ssd_capacity()));
  return fail(Errc::unavailable,
              why + (refused.empty() ? "" : fmt::format("; and the given plan cannot be followed: {}", refused)));
}

// Of the policies that the run may follow; nothing if none can. `goes_on` is asked before each.
Result<std::optional<Best>> best_of(const RunIteration& iteration, const PlanningInput& input,
                                    const std::function<bool()>& goes_on) {
  std::vector<Best> candidates;
  std::optional<Error> failure;
  for (const Policy& policy : kPolicies) {
    if (!input.policy.allows(policy)) continue;
    if (!goes_on()) return fail(Errc::unavailable, "it was interrupted");
    auto candidate = candidate_of(policy, memory_for_plans(iteration, input), iteration, input);
    if (!candidate)
      failure = std::move(candidate).error();
    else if (*candidate)
      candidates.push_back(**std::move(candidate));
  }
  if (candidates.empty() && failure) return std::unexpected(*std::move(failure));  // One's is not the others'.
  return best_of(std::move(candidates), input.machine);
}

// The given plan, if it can be followed in this iteration. The error says what does not match.
Result<Best> best_given(const RunIteration& iteration, const PlanningInput& input) {
  Best best{.plan = input.given->plan, .is_planned = true, .counted_on = input.machine.device.memory, .result = {}};
  if (best.plan.moves() == 0) return fail(Errc::bad_input, fmt::format("{}: it moves nothing", input.given->file));
  const TraceShape shape = shape_of(iteration.rows);
  if (const std::string other = difference(best.plan.trace_shape, shape); !other.empty())
    return fail(Errc::bad_input, fmt::format("{}: it was made for another iteration than this run's: {}; plan for the "
                                             "blocks.trace that `spillway run --record` writes",
                                             input.given->file, other));
  TRY(const Policy policy, policy_by_name(best.plan.policy));
  TRY_VOID(validate_plan(best.plan, iteration.rows, best.plan.trace_hash, iteration.row_lifetimes, input.machine,
                         policy.traits.uses_host, input.given->file));
  TRY(best.result, simulate_run(iteration, input, policy.traits, &best.plan));
  if (!best.result.feasible)
    return fail(Errc::bad_input, fmt::format("{}: it does not fit this run's memory", input.given->file));
  best.plan.predicted_seconds = seconds(best.result.iteration);
  return best;
}

// Rows that lie in the same blocks one after the other are one.
std::vector<Foresight::Row> rows_of(const BlockTrace& blocks, const Lifetimes& lifetimes) {
  CHECK(blocks.homes.size() == lifetimes.tensors.size());
  std::map<BlockId, Foresight::Row> rows;
  for (std::uint32_t t = 0; t < blocks.homes.size(); ++t) {
    Foresight::Row& row = rows[blocks.homes[t].first];
    CHECK(row.blocks.count == 0 || row.blocks == blocks.homes[t]);  // Rows have no block in common.
    row.blocks = blocks.homes[t];
    row.uses.insert(row.uses.end(), lifetimes.tensors[t].uses.begin(), lifetimes.tensors[t].uses.end());
  }
  std::vector<Foresight::Row> result;
  for (auto& [first, row] : rows) {
    std::ranges::sort(row.uses);
    row.uses.erase(std::unique(row.uses.begin(), row.uses.end()), row.uses.end());
    if (!row.uses.empty()) result.push_back(std::move(row));
  }
  return result;
}

// What a steady iteration is predicted to be, and what no plan can do without, though plans count on a part of the
// budget only. Of what must move, the SSD has what host memory cannot take.
PlanFigures figures_of(const Best& best, const RunIteration& iteration, const MachineModel& machine, Bytes budget) {
  const Trace& trace = iteration.rows;
  const Lifetimes& lifetimes = iteration.row_lifetimes;
  const Bytes host = machine.host.memory;
  const LeastMoves device = least_moves(trace, lifetimes, budget);
  const LeastMoves ssd = host == Bytes{} ? device : least_moves(trace, lifetimes, budget + host);
  PlanFigures figures{
      .policy = best.plan.policy,
      .predicted = best.result.iteration,
      .link_bound = std::max({transfer_time(device.in, machine.link.to_device),
                              transfer_time(device.out, machine.link.from_device),
                              transfer_time(ssd.in, machine.ssd_read()), transfer_time(ssd.out, machine.ssd_write())}),
      .least_wait = std::max(least_wait(trace, lifetimes, budget, {}, machine.link.to_device),
                             least_wait(trace, lifetimes, budget, host, machine.ssd_read())),
      .least_in = device.in,
      .least_out = device.out};
  for (const Tier below : {Tier::host, Tier::ssd}) {
    figures.predicted_in += best.result.moved(below, Tier::device);
    figures.predicted_out += best.result.moved(Tier::device, below);
  }
  return figures;
}

RunPlan run_plan(PlanId id, Plan commands, BlockTrace blocks) {
  FollowedPlan run;
  const Lifetimes lifetimes = analyse_lifetimes(blocks.trace);
  run.rows = rows_of(blocks, lifetimes);
  for (const auto& born : lifetimes.births) {
    auto& kernel = run.births.emplace_back();
    for (const TensorId tensor : born) kernel.push_back(blocks.homes[tensor.value]);
  }
  run.id = id;
  run.kernels = static_cast<std::uint32_t>(blocks.trace.kernels.size());
  run.commands = std::move(commands);
  run.homes = std::move(blocks.homes);
  return RunPlan(std::move(run));
}

// Addresses for what the iteration makes.
Result<BirthPlaces> place(const Trace& trace, const Lifetimes& lifetimes, Bytes block_bytes,
                          const SetApart& set_apart) {
  Placement placement = place_births(trace, lifetimes, TensorHeap::kLarge, block_bytes);
  const auto apart = set_apart(placement.bytes);
  if (!apart)
    return fail(Errc::unavailable, fmt::format("there are no addresses left for {} bytes of tensors at planned places",
                                               placement.bytes.value));
  CHECK(block_bytes * apart->count >= placement.bytes);
  for (auto& place : placement.places)
    if (place) *place += block_bytes.value * apart->first.value;
  return BirthPlaces{std::move(placement.places), *apart};
}

// What lies where in a run that does not exist: persistent tensors first, one after the other.
Places packed(const Trace& trace, std::uint64_t& end) {
  Places places;
  for (const Tensor& tensor : trace.tensors) {
    const bool moves = tensor.persistent && tensor.bytes >= TensorHeap::kLarge;
    places.push_back(moves ? std::optional(end) : std::nullopt);
    if (moves) end += tensor.bytes.value;
  }
  return places;
}

// The most bytes of small tensors that live at a time.
Bytes most_small(const Trace& trace, const Lifetimes& lifetimes) {
  const auto small = [&](TensorId tensor) {
    return trace[tensor].bytes < TensorHeap::kLarge ? trace[tensor].bytes : Bytes{};
  };
  Bytes live, most;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (lifetimes.tensors[t].alive_at_start) live += small({t});
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    for (const TensorId born : lifetimes.births[k]) live += small(born);
    most = std::max(most, live);
    for (const TensorId dead : lifetimes.deaths[k]) live = excess(live, small(dead));
  }
  return most;
}

}  // namespace

Result<std::vector<Prediction>> predict(const Trace& trace, MachineModel machine, Bytes block_bytes,
                                        const RunPolicy& policy, std::span<const Bytes> budgets,
                                        const std::function<bool()>& goes_on) {
  TRY_VOID(validate(trace, "the iteration recorded"));
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  const Placement placement = place_births(trace, lifetimes, TensorHeap::kLarge, block_bytes);
  std::uint64_t end = placement.bytes.value;
  Places places = packed(trace, end);
  for (std::uint32_t t = 0; t < places.size(); ++t)
    if (!places[t]) places[t] = placement.places[t];
  const Bytes unplanned = most_small(trace, lifetimes) + spare_memory(block_bytes);
  const BlockTrace blocks = block_trace(trace, lifetimes, places, block_bytes);
  const RunIteration iteration = run_iteration(blocks.trace, trace);
  std::vector<Prediction> predictions;
  for (const Bytes budget : budgets) {
    machine.device.memory = excess(budget, unplanned);
    TRY(const auto best, best_of(iteration,
                                 {.machine = machine,
                                  .budget = budget,
                                  .block_bytes = block_bytes,
                                  .unplanned = unplanned,
                                  .policy = policy},
                                 goes_on));
    Prediction& prediction = predictions.emplace_back();
    prediction.device = budget;
    if (!best) continue;
    prediction.iteration = best->result.iteration;
    prediction.policy = all_moved(best->result) == Bytes{} ? "" : best->plan.policy;
  }
  return predictions;
}

Result<PlanningResult> plan_run(const PlanningInput& input, const SetApart& set_apart) {
  const Trace& trace = input.iteration.trace;
  TRY_VOID(validate(trace, "the iteration recorded"));
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  auto proposed = std::make_unique<Proposal>();
  if (input.places) {
    proposed->places = *input.places;
  } else {
    TRY(proposed->places, place(trace, lifetimes, input.block_bytes, set_apart));
  }
  Places places = proposed->places.places;
  CHECK(places.size() == trace.tensors.size() && input.persistent.size() == trace.tensors.size());
  CHECK(input.iteration.signatures.size() == trace.kernels.size());
  CHECK(input.iteration.births.size() == trace.kernels.size());
  for (const auto& births : input.iteration.births) {
    auto& kernel = proposed->births.emplace_back();
    for (const TensorId born : births) kernel.push_back(places[born.value]);
  }
  for (std::size_t t = 0; t < places.size(); ++t)
    if (!places[t]) places[t] = input.persistent[t];
  BlockTrace blocks = block_trace(trace, lifetimes, places, input.block_bytes);
  const RunIteration iteration = run_iteration(blocks.trace, trace);
  PlanningResult planned;
  std::optional<Best> best;
  if (input.given) {
    if (auto given = best_given(iteration, input))
      best = *std::move(given);
    else
      planned.refused = given.error().message;
  }
  const bool is_given = best.has_value();
  if (!best) {
    TRY(best, best_of(iteration, input, [] { return true; }));
  }
  if (!best) return too_little_for(input.policy.chooses ? "any policy" : input.policy.name, planned.refused, input);
  if (best->plan.moves() == 0) return planned;
  best->plan.trace_shape = shape_of(iteration.rows);
  best->plan.machine_name = input.machine.name;
  best->plan.machine_hash = input.machine.hash;
  best->plan.machine_overrides = {fmt::format("device.memory={}", best->counted_on.value),
                                  fmt::format("host.memory={}", input.machine.host.memory.value),
                                  fmt::format("ssd.capacity={}", input.machine.ssd.capacity.value),
                                  fmt::format("ssd.read={}", input.machine.ssd.read.value),
                                  fmt::format("ssd.write={}", input.machine.ssd.write.value)};
  proposed->figures = figures_of(*best, iteration, input.machine, input.budget);
  proposed->figures.given = is_given;
  proposed->figures.optimizer_steps = input.iteration.anchors.size();
  proposed->blocks = blocks.trace;
  proposed->iteration = input.iteration.number;
  proposed->signatures = input.iteration.signatures;
  proposed->kernels_with_data = static_cast<std::uint32_t>(std::ranges::count_if(
      trace.kernels, [](const Kernel& kernel) { return !kernel.reads.empty() || !kernel.writes.empty(); }));
  proposed->anchors = input.iteration.anchors;
  proposed->run = run_plan(input.id, std::move(best->plan), std::move(blocks));
  planned.plan = std::move(proposed);
  return planned;
}

}  // namespace spillway
