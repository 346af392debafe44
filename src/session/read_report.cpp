#include "session/read_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "runtime/run_policy.h"
#include "session/hook_side.h"

namespace spillway {
namespace {

Bytes bytes(const SessionState::Counter& counter) { return Bytes{counter.load()}; }

// Fixed fields are the supervisor's own and end with a zero; cut nevertheless at the field's end.
std::string text(std::span<const char> field) { return {field.begin(), std::ranges::find(field, '\0')}; }

void read_iterations(const SessionState& state, RunReport& report) {
  report.iteration_count = state.iteration_count.load(std::memory_order_acquire);
  const std::size_t kept = std::min<std::uint64_t>(report.iteration_count, kMaxIterations);
  report.iterations.reserve(kept);
  for (std::size_t i = 0; i < kept; ++i)
    report.iterations.push_back({.duration = Nanos{state.iterations[i].duration_ns.load(std::memory_order_relaxed)},
                                 .steps = state.iterations[i].steps.load(std::memory_order_relaxed),
                                 .faults = state.iterations[i].faults.load(std::memory_order_relaxed),
                                 .in = bytes(state.iterations[i].moved_in_bytes),
                                 .out = bytes(state.iterations[i].moved_out_bytes),
                                 .waited = Nanos{state.iterations[i].waited_ns.load(std::memory_order_relaxed)},
                                 .kernels = state.iterations[i].kernels.load(std::memory_order_relaxed),
                                 .planned_kernels = state.iterations[i].planned_kernels.load(std::memory_order_relaxed),
                                 .planned = state.iterations[i].planned.load(std::memory_order_relaxed) != 0});
}

void read_plans(const Session& session, RunReport& report) {
  const SessionState& state = session.state;
  report.plan_count = state.plan_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < std::min<std::uint64_t>(report.plan_count, kMaxPlans); ++i) {
    const PlanRecord& plan = state.plans[i];
    report.plans.push_back({.policy = text(plan.policy),
                            .iteration = plan.iteration.load(),
                            .predicted = Nanos{plan.predicted_ns.load()},
                            .predicted_wait = Nanos{plan.predicted_wait_ns.load()},
                            .predicted_in = bytes(plan.predicted_in_bytes),
                            .predicted_out = bytes(plan.predicted_out_bytes),
                            .optimizer_steps = plan.optimizer_steps.load(),
                            .link_bound = Nanos{plan.link_bound_ns.load()},
                            .least_wait = Nanos{plan.least_wait_ns.load()},
                            .planning = Nanos{plan.planning_ns.load()},
                            .least_in = bytes(plan.least_in_bytes),
                            .least_out = bytes(plan.least_out_bytes),
                            .adopted_at_iteration = plan.adopted_at_iteration.load(),
                            .given_up_at_iteration = plan.given_up_at_iteration.load(),
                            .end = plan.end.load(),
                            .file = plan.given != 0 ? text(session.config.plan_path) : ""});
  }
  // Taken up after the last iteration: no iteration has followed it. Of very many plans the one before is not known.
  while (!report.plans.empty() && report.plan_count <= kMaxPlans &&
         report.plans.back().adopted_at_iteration > report.iteration_count) {
    report.plans.pop_back();
    --report.plan_count;
  }
}

void read_costs(const SessionState& state, RunReport& report) {
  const std::uint64_t version = state.costs_version.load(std::memory_order_acquire);
  if (version == 0) return;
  for (const CostRecord& cost : state.costs[version % 2])
    if (cost.moved_bytes != 0)
      report.costs.push_back({.name = text(cost.name),
                              .maker = text(cost.maker),
                              .bytes = Bytes{cost.bytes},
                              .moved = Bytes{cost.moved_bytes},
                              .waited_for = Bytes{cost.waited_for_bytes}});
}

void read_texts(const SessionState& state, RunReport& report) {
  report.unmanaged_count = state.unmanaged_count.load();
  for (const UnmanagedProcess& process : state.unmanaged)
    if (const std::int64_t pid = process.pid.load(); pid != 0)
      report.unmanaged.push_back({.pid = pid, .name = std::string(process.name.get())});
  for (const auto& notice : state.notices)
    if (notice.is_set()) report.notices.emplace_back(notice.get());
  if (const std::uint64_t count = state.notice_count.load(); count > kMaxNotices)
    report.notices.push_back(fmt::format("there was no room for {} more such notes", count - kMaxNotices));
  report.error = state.error.get();
  report.not_recorded = state.not_recorded.get();
}

}  // namespace

RunReport read_report(const Session& session, const Supervised& supervised) {
  const SessionState& state = session.state;
  RunReport report;
  report.exit_status = supervised.exit_status;
  report.wall = supervised.wall;
  report.made_tensors = state.owner_pid.load() != 0;
  const Nanos since{state.owner_since_ns.load()};
  if (since.value != 0) report.managed = excess(supervised.ended, since);
  report.policy = text(session.config.policy);
  const auto policy = run_policy(report.policy);  // Where only a trace is wanted there is none.
  report.learns = policy && policy->learns();
  report.eviction_path = state.eviction_path.load();
  if (report.eviction_path == EvictionMethod::automatic) report.eviction_path = session.config.eviction_path;
  report.unlimited = session.config.unlimited;
  report.device_budget = Bytes{session.config.device_budget_bytes};
  report.host_budget = Bytes{session.config.host_budget_bytes};
  report.peak = {.device = bytes(state.peak_device_bytes),
                 .host = bytes(state.peak_host_bytes),
                 .ssd = bytes(state.peak_ssd_bytes)};
  report.refused = bytes(state.refused_bytes);
  report.unmanaged_peak = bytes(state.unmanaged_peak_bytes);
  report.faults = state.faults.load();
  report.first_touches = state.first_touches.load();
  report.ssd_written = bytes(state.ssd_written_bytes);
  report.clean_drops = bytes(state.clean_drops_bytes);
  report.unseen_writes = state.unseen_writes.load();
  report.stall = Nanos{state.stall_ns.load()};
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to) report.moved(from, to) = bytes(state.moved(from, to));
  read_iterations(state, report);
  read_plans(session, report);
  read_costs(state, report);
  read_texts(state, report);
  if (state.recorded > 0) report.recorded = text(session.config.record_path);
  const auto rate = [](const SessionState::Counter& counter) {
    const std::uint64_t value = counter.load();
    return value == 0 ? std::nullopt : std::optional(BytesPerSecond{value});
  };
  report.ssd_read_rate = rate(state.ssd_read_rate);
  report.ssd_write_rate = rate(state.ssd_write_rate);
  if (state.plan_recorded != 0 && !report.plans.empty())
    report.recorded_plan = text(session.config.blocks_path) + ".plan";
  if (state.journalled != 0) report.journal = text(session.config.journal_path);
  const bool asked_to_record = !text(session.config.record_path).empty();
  if (asked_to_record && report.recorded.empty() && report.not_recorded.empty())
    report.not_recorded =
        report.made_tensors
            ? fmt::format(
                  "the script ended with status {} after {} iteration{}, before its trace was written; that "
                  "happens when an iteration has repeated itself, without torch.optim when the script ends by itself",
                  report.exit_status, report.iteration_count, report.iteration_count == 1 ? "" : "s")
            : "the script made no tensors with PyTorch";
  if (policy && policy->plans() && report.plans.empty() && has_moved(report)) {
    if (session.config.rates.copy == 0)
      report.not_planned = "this machine could not be measured";
    else if (state.not_planned.is_set())
      report.not_planned = state.not_planned.get();
    else
      report.not_planned = fmt::format("the script ended with status {}, before one was followed", report.exit_status);
  }
  report.has_optimizer = !state.not_planned.is_set() || state.not_planned.get() != kNoOptimizer;
  report.left_behind = supervised.left_behind;
  return report;
}

}  // namespace spillway
