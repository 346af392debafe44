#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "report/json.h"
#include "report/run_report.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

Json json_of(std::uint64_t count) { return count; }
Json json_of(Bytes size) { return size.value; }
Json json_of(Nanos time) { return seconds(time); }
template <std::size_t kBytes>
Json json_of(const FixedText<kBytes>& text) {
  return text_or_null(text.view());
}

Json json_of(PlanEnd end) {
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

// All figures of a record that have a name here.
template <class Record>
void add(Json& object, const Record& record) {
  const auto add_one = [&]<class Figure>(const Figure& figure) {
    if constexpr (requires { figure.name; }) object[figure.name] = json_of(record.*figure.value);
  };
  std::apply([&](const auto&... figure) { (add_one(figure), ...); }, Record::figures());
}

Json iterations(const RunReport& report) {
  Json list = Json::array();
  const std::vector<RunPhase> phase_of = phase_of_each(report);
  for (std::size_t i = 0; i < report.iterations.size(); ++i) {
    list.push_back({{"phase", to_text(phase_of[i])}});
    add(list.back(), report.iterations[i]);
  }
  return list;
}

Json phases(const RunReport& report) {
  Json list = Json::array();
  for (const RunReport::Phase& phase : phases_of(report))
    list.push_back({{"name", to_text(phase.kind)},
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
  for (const CostFigures& cost : report.costs) add(list.emplace_back(), cost);
  return list;
}

Json advice(const RunReport& report) {
  const auto advice = advice_of(report);
  if (!advice) return nullptr;
  return {{"kind", advice->kind == RunReport::Advice::Kind::fits ? "fits" : "waits"}, {"sentence", advice->sentence}};
}

Json unmanaged_processes(const RunReport& report) {
  Json list = Json::array();
  for (const RunReport::Unmanaged& process : report.unmanaged)
    list.push_back({{"pid", process.pid}, {"name", process.name}});
  return list;
}

Json gpu(const RunReport& report) {
  if (!report.gpu) return nullptr;
  Json object{{"name", report.gpu->name},
              {"cuda_version", cuda_version_text(*report.gpu)},
              {"block_bytes", report.gpu->block_bytes.value},
              {"pinned_budget_bytes", report.gpu->pinned_budget.value},
              {"strict", report.gpu->strict}};
  add(object, report.gpu->figures);
  return object;
}

// The one that was taken up last, and since when the run has been planned.
Json plan(const RunReport& report) {
  if (report.plans.empty()) return nullptr;
  const PlanFigures& last = report.plans.back();
  Json object;
  add(object, last);
  object["adopted_at_iteration"] = report.plans.front().adopted_at_iteration;
  object["given_up_at_iteration"] = last.dropped_at_iteration == 0 ? Json(nullptr) : Json(last.dropped_at_iteration);
  object["read_from"] = last.given == 0 ? Json(nullptr) : text_or_null(report.given_plan);
  return object;
}

}  // namespace

std::string to_json(const RunReport& report) {
  Json object = new_report();
  object.update({{"exit_status", report.exit_status},
                 {"wall_seconds", seconds(report.wall)},
                 {"made_tensors", report.made_tensors},
                 {"device", report.gpu ? report.gpu->device : "cpu"},
                 {"gpu", gpu(report)},
                 {"policy", report.policy},
                 {"eviction_path", report.gpu ? Json(nullptr) : Json(to_text(report.eviction_path))},
                 {"unlimited", report.unlimited},
                 {"device_budget_bytes", report.device_budget.value},
                 {"host_budget_bytes", report.host_budget.value},
                 {"peak_device_bytes", report.memory.peak.device.value},
                 {"peak_host_bytes", report.memory.peak.host.value},
                 {"peak_ssd_bytes", report.memory.peak.ssd.value},
                 {"refused_bytes", report.refused.value},
                 {"unmanaged_peak_bytes", report.unmanaged_peak.value}});
  add(object, report.memory);
  object.update({{"ssd_written_bytes_per_hour", report.ssd_written_per_hour().value},
                 {"phases", phases(report)},
                 {"plan", plan(report)},
                 {"no_plan_because", text_or_null(why_no_plan(report))},
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
                 {"error", text_or_null(report.error)}});
  return to_text(object);
}

}  // namespace spillway
