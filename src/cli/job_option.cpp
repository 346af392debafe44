#include "cli/job_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "base/text.h"
#include "cli/command.h"
#include "cli/evaluation.h"
#include "evaluation/evaluate_jobs.h"
#include "report/estimates.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

struct GivenJob {
  std::string file;
  LoadedTrace loaded;
  Lifetimes lifetimes;
  double weight = 1;
  Nanos arrival{};
  std::uint32_t iterations = 20;
};

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

Result<> set(GivenJob& job, std::string_view setting) {
  const std::size_t equals = std::min(setting.find('='), setting.size());
  const std::string_view key = setting.substr(0, equals), value = setting.substr(std::min(equals + 1, setting.size()));
  const auto wrong = [&](std::string_view what) {
    return fail(Errc::usage, fmt::format("--job {}: {} must be {}, not '{}'", job.file, key, what, value));
  };
  if (key == "weight") {
    if (!read_number(value, job.weight) || !(job.weight >= 1e-3 && job.weight <= 1e3))
      return wrong("a number from 0.001 to 1000");
  } else if (key == "iterations") {
    if (!read_number(value, job.iterations) || job.iterations == 0 || job.iterations > 100'000)
      return wrong("a whole number from 1 to 100000");
  } else if (key == "arrival") {
    if (value == "0") return {};
    const auto arrival = parse_duration(value);
    if (!arrival) return wrong("a time such as 3s");
    job.arrival = *arrival;
  } else {
    return fail(Errc::usage,
                fmt::format("--job {}: '{}' is none of weight=, arrival= and iterations=", job.file, setting));
  }
  return {};
}

// A file's name may have colons, settings have an equals sign behind the last one.
Result<GivenJob> load_job(const std::string& text) {
  std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || text.find('=', colon) == std::string::npos) colon = text.size();
  GivenJob job{.file = text.substr(0, colon), .loaded = {}, .lifetimes = {}};
  if (colon < text.size())
    for (const auto setting : std::string_view(text).substr(colon + 1) | std::views::split(','))
      TRY_VOID(set(job, std::string_view(setting)));
  TRY(job.loaded, load_trace(job.file));
  job.lifetimes = analyse_lifetimes(job.loaded.trace);
  return job;
}

Json json_of(const std::string& policy, const JobsResult& result, const JobsCost& cost,
             const std::vector<GivenJob>& jobs) {
  Json object;
  object["policy"] = policy;
  object["feasible"] = result.feasible;
  object["shortfall"] = json_of(result.shortfall);
  object["jobs"] = Json::array();
  for (std::size_t at = 0; at < jobs.size(); ++at) {
    Json job{{"name", jobs[at].loaded.trace.name},
             {"arrival_seconds", seconds(jobs[at].arrival)},
             {"weight", jobs[at].weight},
             {"iterations", jobs[at].iterations}};
    const auto value = [&](auto of) { return result.feasible ? Json(of(result.jobs[at])) : Json(nullptr); };
    job["first_iteration_seconds"] = value([](const JobResult& one) { return seconds(one.first_iteration); });
    job["mean_iteration_seconds"] = value([](const JobResult& one) { return seconds(one.mean_iteration); });
    job["stall_seconds"] = value([](const JobResult& one) { return seconds(one.stall); });
    job["peak_bytes"] = value([](const JobResult& one) { return one.peak.value; });
    object["jobs"].push_back(std::move(job));
  }
  const auto when_feasible = [&](double number) { return result.feasible ? Json(number) : Json(nullptr); };
  object["device_peak_bytes"] = result.feasible ? Json(result.device_peak.value) : Json(nullptr);
  object["moved_bytes"] = json_of(result.moved);
  object["end_seconds"] = when_feasible(seconds(result.end));
  object["memory_saving_ratio"] = when_feasible(cost.memory_saving_ratio);
  object["extra_overhead_ratio"] = when_feasible(cost.extra_overhead_ratio);
  object["cost_benefit_ratio"] = when_feasible(cost.cost_benefit_ratio);
  return object;
}

void add_rows(Table& table, const std::string& policy, const JobsResult& result, const JobsCost* cost,
              const std::vector<GivenJob>& jobs) {
  if (!result.feasible) return table.add_row({policy, "infeasible", "", "", "", "", "", "", ""});
  for (std::size_t at = 0; at < jobs.size(); ++at) {
    const JobResult& job = result.jobs[at];
    const bool first = at == 0;
    const auto ratio = [&](double value) { return first && cost != nullptr ? fmt::format("{:.3f}", value) : ""; };
    table.add_row({first ? policy : "", printable(jobs[at].loaded.trace.name),
                   fmt::format("{:.3f} s", seconds(job.first_iteration)),
                   fmt::format("{:.3f} s", seconds(job.mean_iteration)), to_text(job.peak),
                   first ? to_text(result.device_peak) : "", ratio(cost != nullptr ? cost->memory_saving_ratio : 0),
                   ratio(cost != nullptr ? cost->extra_overhead_ratio : 0),
                   ratio(cost != nullptr ? cost->cost_benefit_ratio : 0)});
  }
}

}  // namespace

void JobOption::add_to(CLI::App& command) {
  command.add_option("--job", texts,
                     "a job beside others: FILE[:weight=W,arrival=TIME,iterations=N]; once for each, instead of TRACE; "
                     "default: 1, 0s, 20");
}

Result<> JobOption::check(const std::string& trace) const {
  if (trace.empty() == is_used()) return {};
  return fail(Errc::usage,
              trace.empty() ? "give a TRACE, or a --job for each of several" : "give a TRACE or --job, not both");
}

Result<> JobOption::refuse(const std::optional<Noise>& noise) const {
  if (!noise || !is_used()) return {};
  return fail(Errc::usage, "--noise is for one trace; leave it out, or give TRACE without --job");
}

Result<int> run_jobs(const JobOption& option, const std::vector<Policy>& policies, MachineModel machine, bool json) {
  std::vector<GivenJob> given;
  for (const std::string& text : option.texts) {
    TRY(GivenJob job, load_job(text));
    given.push_back(std::move(job));
  }
  std::vector<DeviceJob> jobs;
  for (const GivenJob& job : given)
    jobs.push_back({job.loaded.trace.name, job.loaded.trace, job.lifetimes, job.weight, job.arrival, job.iterations});
  for (const Policy& policy : policies) TRY_VOID(check_for_jobs(policy));
  TRY(const JobsResult without, evaluate_unlimited(jobs, machine));
  Table table({{"policy", Align::left},
               {"job", Align::left},
               {"first iteration"},
               {"mean"},
               {"peak"},
               {"device peak"},
               {"MSR"},
               {"EOR"},
               {"CBR"}});
  add_rows(table, "(no limit)", without, nullptr, given);
  Json report = new_report();
  report["machine"] = {{"name", machine.name}, {"hash", machine.hash}, {"overrides", machine.overrides}};
  bool any = false;
  std::string notes;
  for (const GivenJob& job : given) {
    const std::string note = estimate_note(job.loaded.trace);
    if (note.empty()) continue;
    notes += fmt::format("{}: {}", printable(job.loaded.trace.name), note);
    report["estimated_times"] = true;
  }
  Progress progress("comparing policies", policies.size());
  std::size_t done = 0;
  for (const Policy& policy : policies) {
    TRY(const JobsResult result, evaluate_jobs(policy, jobs, machine));
    any |= result.feasible;
    const JobsCost cost = result.feasible ? cost_of(result, without) : JobsCost{};
    add_rows(table, text_of(policy), result, &cost, given);
    if (!result.feasible) notes += fmt::format("{} needs {}.\n", text_of(policy), missing_text(result.shortfall));
    Json object = json_of(text_of(policy), result, cost, given);
    if (policies.size() == 1)
      report.update(object);
    else
      report["results"].push_back(std::move(object));
    progress.at(++done);
  }
  const int status = any ? kSuccess : kInfeasible;
  if (json) return print(to_text(report), status);
  notes +=
      "MSR: the part of the peak that is saved. EOR: how many times as long a mean iteration takes. CBR: MSR / EOR.\n";
  return print(fmt::format("{} jobs on {} ({} device)\n\n{}\n{}", given.size(), printable(machine.name),
                           to_text(machine.device.memory), table.text(), notes),
               status);
}

}  // namespace spillway
