#include "session/read_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "base/text.h"
#include "runtime/run_policy.h"

namespace spillway {
namespace {

// Fixed fields are the supervisor's own and end with a zero; cut nevertheless at the field's end.
std::string text(std::span<const char> field) { return {field.begin(), std::ranges::find(field, '\0')}; }

void read_plans(const SessionState& state, RunReport& report) {
  report.plan_count = state.plans.count();
  for (std::size_t i = 0; i < state.plans.size(); ++i) report.plans.push_back(state.plans[i]);
  if (report.plan_count > kMaxPlans) report.plans.push_back(state.plans.last().record);
  // Taken up after the last iteration: no iteration has followed it. Of very many plans the one before is not known.
  while (!report.plans.empty() && report.plan_count <= kMaxPlans &&
         report.plans.back().adopted_at_iteration > report.iteration_count) {
    report.plans.pop_back();
    --report.plan_count;
  }
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
  if (const OversizedOperator running = state.oversized.load(); !running.name.view().empty())
    report.notices.push_back(fmt::format(
        "{} was running when the script ended: it used at least {}, more than the device memory of {}, so that "
        "parts of it come by page faults and it may take very long; more memory would help (--device-memory)",
        running.name.view(), to_text(running.used), to_text(report.device_budget)));
  report.error = state.error.get();
  report.not_recorded = state.not_recorded.get();
}

}  // namespace

RunReport read_report(const Session& session, const Supervised& supervised) {
  const SessionState& state = session.state;
  const SessionConfig& config = session.config;
  RunReport report;
  report.exit_status = supervised.exit_status;
  report.wall = supervised.wall;
  report.left_behind = supervised.left_behind;
  report.made_tensors = state.owner_pid.load() != 0;
  const Nanos since{state.owner_since_ns.load()};
  if (since.value != 0) report.managed = excess(supervised.ended, since);
  if (config.gpu >= 0)
    report.gpu = {.device = fmt::format("cuda:{}", config.gpu),
                  .name = text(config.gpu_name),
                  .cuda_version = config.cuda_version,
                  .block_bytes = Bytes{config.block_bytes},
                  .pinned_budget = Bytes{config.pinned_budget_bytes},
                  .strict = config.strict,
                  .figures = state.gpu.load()};
  report.policy = text(config.policy);
  const auto policy = run_policy(report.policy);  // Where only a trace is wanted there is none.
  report.learns = policy && policy->learns();
  report.eviction_path = state.eviction_path.load();
  if (report.eviction_path == EvictionMethod::automatic) report.eviction_path = config.eviction_path;
  report.unlimited = config.unlimited;
  report.device_budget = Bytes{config.device_budget_bytes};
  report.host_budget = Bytes{config.host_budget_bytes};
  report.memory = state.memory.load();
  report.refused = Bytes{state.refused_bytes.load()};
  report.unmanaged_peak = Bytes{state.unmanaged_peak_bytes.load()};
  const auto rate = [](const SessionState::Counter& counter) {
    const std::uint64_t value = counter.load();
    return value == 0 ? std::nullopt : std::optional(BytesPerSecond{value});
  };
  report.ssd_read_rate = rate(state.ssd_read_rate);
  report.ssd_write_rate = rate(state.ssd_write_rate);
  report.iteration_count = state.iterations.count();
  report.iterations.reserve(state.iterations.size());
  for (std::size_t i = 0; i < state.iterations.size(); ++i) report.iterations.push_back(state.iterations[i]);
  read_plans(state, report);
  report.given_plan = text(config.plan_path);
  for (const CostFigures& cost : state.costs.load())
    if (cost.moved > Bytes{}) report.costs.push_back(cost);
  const WhyNoPlan no_plan = state.no_plan.load();
  report.has_optimizer = no_plan.reason != NoPlan::no_optimizer;
  if (policy && policy->plans() && report.plans.empty() && has_moved(report.memory))
    report.no_plan = config.rates.are_known() ? no_plan : WhyNoPlan{NoPlan::not_measured, {}};
  read_texts(state, report);
  report.recorded_steps = state.recorded;
  if (state.recorded > 0) report.recorded = text(config.record_path);
  if (state.plan_recorded != 0 && !report.plans.empty()) report.recorded_plan = text(config.blocks_path) + ".plan";
  if (state.journalled != 0) report.journal = text(config.journal_path);
  const bool asked_to_record = !text(config.record_path).empty();
  if (asked_to_record && report.recorded.empty() && report.not_recorded.empty())
    report.not_recorded =
        report.made_tensors
            ? fmt::format(
                  "the script ended with status {} after {} iteration{}, before its trace was written; that "
                  "happens when an iteration has repeated itself, without torch.optim when the script ends by itself",
                  report.exit_status, report.iteration_count, report.iteration_count == 1 ? "" : "s")
            : "the script made no tensors with PyTorch";
  return report;
}

}  // namespace spillway
