#include "cli/show_plan.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/listing.h"
#include "plan/plan_file.h"
#include "plan/validate.h"
#include "report/estimates.h"
#include "report/json.h"
#include "report/table.h"
#include "trace/format.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// Which memory it is for is no matter here.
MachineModel with_room_for_all() {
  MachineModel machine;
  machine.host.memory = machine.ssd.capacity = Bytes{std::uint64_t{1} << 60};
  return machine;
}

std::string trace_beside(const std::string& plan) {
  std::string beside = fs::path(plan).replace_extension(".trace").string();
  std::error_code none;
  if (!fs::exists(beside, none) && fs::exists(beside + ".zst", none)) beside += ".zst";
  return beside;
}

std::string plan_json(const Plan& plan, const LoadedTrace& loaded) {
  auto report = new_report(loaded);
  report["policy"] = plan.policy;
  report["moves"] = plan.moves();
  for (const Tier to : {Tier::host, Tier::ssd})
    report["evicted_bytes"][std::string(to_text(to))] = evicted_to(to, plan, loaded.trace).value;
  report["predicted_seconds"] =
      plan.predicted_seconds ? nlohmann::ordered_json(*plan.predicted_seconds) : nlohmann::ordered_json(nullptr);
  return to_text(report);
}

std::string plan_text(const Plan& plan, const Trace& trace, const Lifetimes& lifetimes) {
  std::string text = fmt::format(
      "{} for {}: {} evictions ({} to the SSD, {} to host memory) and {} prefetches in each iteration{}\n{}\n",
      printable(plan.policy), printable(trace.name), plan.evictions.size(), to_text(evicted_to(Tier::ssd, plan, trace)),
      to_text(evicted_to(Tier::host, plan, trace)), plan.prefetches.size(),
      plan.predicted_seconds ? fmt::format(", predicted {:.3f} s", *plan.predicted_seconds) : "", estimate_note(trace));
  for (const std::string& line : listing(plan, trace, lifetimes)) text += printable(line, line.size()) + '\n';
  return text;
}

}  // namespace

Result<PlanWithTrace> load_plan_with_trace(const std::string& file, const std::string& trace) {
  TRY(Plan plan, load_plan(file));
  auto loaded = load_trace(trace.empty() ? trace_beside(file) : trace);
  if (!loaded)
    return fail(loaded.error().code, fmt::format("cannot show {} without the trace that it was made for: {}; name it "
                                                 "with --trace",
                                                 file, loaded.error().message));
  TRY_VOID(validate_plan(plan, loaded->trace, loaded->hash, analyse_lifetimes(loaded->trace), with_room_for_all(), true,
                         file));
  return PlanWithTrace{std::move(plan), *std::move(loaded)};
}

std::string show_plan(const PlanWithTrace& shown, bool json) {
  const auto& [plan, loaded] = shown;
  return json ? plan_json(plan, loaded) : plan_text(plan, loaded.trace, analyse_lifetimes(loaded.trace));
}

}  // namespace spillway
