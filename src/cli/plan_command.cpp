#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/lifetimes.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/machine_option.h"
#include "machines/sim/simulate.h"
#include "plan/listing.h"
#include "plan/plan_file.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "report/json.h"
#include "report/table.h"
#include "trace/format.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

struct PlanOptions {
  std::string trace, policy, output;
  MachineOption machine;
  bool listing = false, json = false;
};

struct Planned {
  Plan plan;
  PerTier<Bytes> shortfall;  // all zero: feasible
  double planning_seconds = 0;

  bool feasible() const { return shortfall == PerTier<Bytes>{}; }
};

Result<Planned> make_plan(const Policy& policy, const LoadedTrace& loaded, const Lifetimes& lifetimes,
                          const MachineModel& machine) {
  Planned planned;
  const auto begin = std::chrono::steady_clock::now();
  planned.shortfall = shortfall(lifetimes, machine, policy.traits);
  if (!planned.feasible()) return planned;
  if (policy.plan) planned.plan = policy.plan({loaded.trace, lifetimes, machine});
  planned.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  planned.plan.policy = policy.name;
  planned.plan.trace_name = loaded.trace.name;
  planned.plan.trace_hash = loaded.hash;
  planned.plan.machine_name = machine.name;
  planned.plan.machine_hash = machine.hash;
  planned.plan.machine_overrides = machine.overrides;
  // Our own plans pass the same gate as edited ones.
  TRY_VOID(validate_plan(planned.plan, loaded.trace, loaded.hash, lifetimes, machine));
  TRY(const SimulationResult run,
      simulate(loaded.trace, lifetimes, machine, policy.traits, policy.plan ? &planned.plan : nullptr));
  if (run.feasible) planned.plan.predicted_seconds = seconds(run.iteration);
  planned.shortfall = run.feasible ? PerTier<Bytes>{} : run.shortfall;
  return planned;
}

std::string json_of(const Policy& policy, const Planned& planned, const LoadedTrace& loaded,
                    const MachineModel& machine) {
  Json report = new_report(loaded.trace.name, loaded.hash);
  report["machine"] = {{"name", machine.name}, {"hash", machine.hash}, {"overrides", machine.overrides}};
  report["policy"] = policy.name;
  report["feasible"] = planned.feasible();
  for (const Tier tier : kTiers) report["shortfall"][std::string(to_text(tier))] = planned.shortfall[tier].value;
  report["moves"] = planned.plan.moves();
  report["overcommitted_bytes"] = planned.plan.overcommitted.value;
  report["predicted_seconds"] = planned.plan.predicted_seconds ? Json(*planned.plan.predicted_seconds) : Json(nullptr);
  report["planning_seconds"] = planned.feasible() ? Json(planned.planning_seconds) : Json(nullptr);
  return to_text(report);
}

std::string missing(const PerTier<Bytes>& shortfall) {
  std::string text;
  for (const Tier tier : kTiers)
    if (shortfall[tier] > Bytes{})
      text += fmt::format("{}{} more {}", text.empty() ? "" : ", ", to_text(shortfall[tier]),
                          tier == Tier::ssd ? "on the SSD" : fmt::format("{} memory", to_text(tier)));
  return text;
}

std::string table_of(const Policy& policy, const Planned& planned, const LoadedTrace& loaded,
                     const MachineModel& machine) {
  const std::string title =
      fmt::format("{} for {} on {}", policy.name, printable(loaded.trace.name), printable(machine.name));
  if (!planned.feasible()) return fmt::format("{}: infeasible, it needs {}\n", title, missing(planned.shortfall));
  PerTier<std::uint64_t> count;
  PerTier<Bytes> bytes;
  for (const Eviction& eviction : planned.plan.evictions) {
    ++count[eviction.to];
    bytes[eviction.to] += loaded.trace[eviction.tensor].bytes;
  }
  Table table({{"each iteration", Align::left}, {"", Align::right}});
  table.add_row({"evictions to the SSD", fmt::format("{} ({})", count.ssd, to_text(bytes.ssd))});
  table.add_row({"evictions to host memory", fmt::format("{} ({})", count.host, to_text(bytes.host))});
  table.add_row({"prefetches", std::to_string(planned.plan.prefetches.size())});
  table.add_row({"beyond the device at most", to_text(planned.plan.overcommitted)});
  if (planned.plan.predicted_seconds)
    table.add_row({"predicted", fmt::format("{:.3f} s", *planned.plan.predicted_seconds)});
  return fmt::format("{}, planned in {:.3f} s\n\n{}", title, planned.planning_seconds, table.text());
}

std::string listing_of(const Planned& planned, const LoadedTrace& loaded, const Lifetimes& lifetimes) {
  std::string text;
  for (const std::string& line : listing(planned.plan, loaded.trace, lifetimes)) text += printable(line) + '\n';
  return text;
}

Result<int> plan(const PlanOptions& options) {
  TRY(const Policy policy, policy_by_name(options.policy));
  TRY(const MachineModel machine, options.machine.load());
  TRY(const LoadedTrace loaded, load_trace(options.trace));
  const Lifetimes lifetimes = analyse_lifetimes(loaded.trace);
  TRY(const Planned planned, make_plan(policy, loaded, lifetimes, machine));
  if (planned.feasible() && !options.output.empty()) TRY_VOID(write_file(options.output, to_json(planned.plan)));
  if (options.json) {
    TRY_VOID(print(json_of(policy, planned, loaded, machine)));
  } else if (options.listing && planned.feasible()) {
    TRY_VOID(print(listing_of(planned, loaded, lifetimes)));
  } else {
    TRY_VOID(print(table_of(policy, planned, loaded, machine)));
  }
  return planned.feasible() ? kSuccess : kInfeasible;
}

std::string policy_names() {
  std::string names;
  for (const Policy& policy : kPolicies) names.append(names.empty() ? "" : ", ").append(policy.name);
  return names;
}

}  // namespace

void add_plan_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("plan", "What to move when, so that an iteration fits a machine");
  command->footer(
      "Examples:\n  spillway plan model.trace --policy g10 --machine a100 -o model.plan\n"
      "  spillway plan model.trace --policy g10 --machine a100 --set device.memory=20GiB --listing\n"
      "A plan is JSON that can be edited by hand; `spillway simulate --plan` runs it. Status 3: the memory cannot "
      "suffice.");
  auto options = std::make_shared<PlanOptions>();
  command->add_option("TRACE", options->trace, "a .trace or .trace.zst file")->required();
  command->add_option("--policy", options->policy, policy_names())->required();
  options->machine.add_to(*command);
  command->add_option("-o,--output", options->output, "the plan to write");
  CLI::Option* listing_flag =
      command->add_flag("--listing", options->listing, "the iteration, kernel by kernel, with its moves");
  command->add_flag("--json", options->json, "one JSON object, for programs")->excludes(listing_flag);
  command->callback([options, &status] { status = finish(plan(*options)); });
}

}  // namespace spillway
