#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "report/run_report.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json moved_bytes(const RunReport& report) {
  Json moved;
  const auto add = [&](const char* name, Tier from, Tier to) { moved[name] = report.moved(from, to).value; };
  add("device_to_host", Tier::device, Tier::host);
  add("host_to_device", Tier::host, Tier::device);
  add("device_to_ssd", Tier::device, Tier::ssd);
  add("ssd_to_device", Tier::ssd, Tier::device);
  add("host_to_ssd", Tier::host, Tier::ssd);
  add("ssd_to_host", Tier::ssd, Tier::host);
  return moved;
}

Json iterations(const RunReport& report) {
  Json list = Json::array();
  for (std::size_t i = 0; i < report.iterations.size(); ++i) {
    const RunReport::Iteration& iteration = report.iterations[i];
    list.push_back({{"phase", phase_of(report, i)},
                    {"seconds", seconds(iteration.duration)},
                    {"faults", iteration.faults},
                    {"moved_in_bytes", iteration.in.value},
                    {"moved_out_bytes", iteration.out.value},
                    {"waited_seconds", seconds(iteration.waited)},
                    {"operators", iteration.kernels},
                    {"planned_operators", iteration.planned_kernels}});
  }
  return list;
}

Json phases(const RunReport& report) {
  Json list = Json::array();
  for (const RunReport::Phase& phase : phases_of(report))
    list.push_back({{"name", phase.name},
                    {"iterations", phase.iterations},
                    {"seconds_per_iteration", seconds(phase.duration)},
                    {"faults_per_iteration", phase.faults},
                    {"operators_per_iteration", phase.kernels}});
  return list;
}

Json predictions(const RunReport& report) {
  Json list = Json::array();
  for (const RunReport::Prediction& prediction : report.predictions)
    list.push_back(
        {{"part_of_peak", prediction.part},
         {"device_memory_bytes", prediction.device.value},
         {"seconds_per_iteration", prediction.iteration ? Json(seconds(*prediction.iteration)) : Json(nullptr)},
         {"policy", prediction.policy.empty() ? Json(nullptr) : Json(prediction.policy)}});
  return list;
}

Json costs(const RunReport& report) {
  Json list = Json::array();
  for (const RunReport::Cost& cost : report.costs)
    list.push_back({{"name", text_or_null(cost.name)},
                    {"made_by", text_or_null(cost.maker)},
                    {"bytes", cost.bytes.value},
                    {"moved_bytes", cost.moved.value},
                    {"waited_for_bytes", cost.waited_for.value}});
  return list;
}

Json advice(const RunReport& report) {
  const auto advice = advice_of(report);
  if (!advice) return nullptr;
  return {{"kind", advice->kind}, {"sentence", advice->sentence}};
}

Json unmanaged_processes(const RunReport& report) {
  Json list = Json::array();
  for (const RunReport::Unmanaged& process : report.unmanaged)
    list.push_back({{"pid", process.pid}, {"name", process.name}});
  return list;
}

Json given_up_because(PlanEnd end) {
  switch (end) {
    case PlanEnd::slower:
      return "slower";
    case PlanEnd::other_iteration:
      return "other_iteration";
    case PlanEnd::not_needed:
      return "not_needed";
    case PlanEnd::none:
      return nullptr;
  }
  return nullptr;
}

// The one that was taken up last, and since when the run has been planned.
Json plan(const RunReport& report) {
  if (report.plans.empty()) return nullptr;
  const RunReport::PlanTaken& last = report.plans.back();
  return {{"policy", last.policy},
          {"optimizer_steps", last.optimizer_steps},
          {"predicted_seconds", seconds(last.predicted)},
          {"predicted_in_bytes", last.predicted_in.value},
          {"predicted_out_bytes", last.predicted_out.value},
          {"link_bound_seconds", seconds(last.link_bound)},
          {"least_wait_seconds", seconds(last.least_wait)},
          {"least_in_bytes", last.least_in.value},
          {"least_out_bytes", last.least_out.value},
          {"planning_seconds", seconds(last.planning)},
          {"adopted_at_iteration", report.plans.front().adopted_at_iteration},
          {"followed_since_iteration", last.adopted_at_iteration},
          {"given_up_at_iteration", last.given_up_at_iteration == 0 ? Json(nullptr) : Json(last.given_up_at_iteration)},
          {"given_up_because", given_up_because(last.end)},
          {"read_from", text_or_null(last.file)}};
}

}  // namespace

std::string to_json(const RunReport& report) {
  const Json object{
      {"spillway", kVersion},
      {"exit_status", report.exit_status},
      {"wall_seconds", seconds(report.wall)},
      {"made_tensors", report.made_tensors},
      {"policy", report.policy},
      {"eviction_path", to_text(report.eviction_path)},
      {"unlimited", report.unlimited},
      {"device_budget_bytes", report.device_budget.value},
      {"host_budget_bytes", report.host_budget.value},
      {"peak_device_bytes", report.peak.device.value},
      {"peak_host_bytes", report.peak.host.value},
      {"peak_ssd_bytes", report.peak.ssd.value},
      {"refused_bytes", report.refused.value},
      {"unmanaged_peak_bytes", report.unmanaged_peak.value},
      {"faults", report.faults},
      {"first_touches", report.first_touches},
      {"moved_bytes", moved_bytes(report)},
      {"clean_drops_bytes", report.clean_drops.value},
      {"unseen_writes", report.unseen_writes},
      {"ssd_written_bytes", report.ssd_written.value},
      {"ssd_written_bytes_per_hour", report.ssd_written_per_hour().value},
      {"stall_seconds", seconds(report.stall)},
      {"phases", phases(report)},
      {"plan", plan(report)},
      {"no_plan_because", text_or_null(report.not_planned)},
      {"replans", report.plan_count == 0 ? 0 : report.plan_count - 1},
      {"predictions", predictions(report)},
      {"no_predictions_because", text_or_null(report.not_predicted)},
      {"most_moved_tensors", costs(report)},
      {"advice", advice(report)},
      {"iteration_count", report.iteration_count},
      {"iterations", iterations(report)},
      {"unmanaged_process_count", report.unmanaged_count},
      {"unmanaged_processes", unmanaged_processes(report)},
      {"left_behind", text_or_null(report.left_behind)},
      {"trace_file", text_or_null(report.recorded)},
      {"plan_file", text_or_null(report.recorded_plan)},
      {"no_trace_because", text_or_null(report.not_recorded)},
      {"journal_file", text_or_null(report.journal)},
      {"notices", report.notices},
      {"error", text_or_null(report.error)},
  };
  // Names come from other processes and need not be UTF-8: what is not becomes a replacement character, never a throw.
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
