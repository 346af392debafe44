#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/evaluation.h"
#include "cli/machine_option.h"
#include "cli/replaced_file.h"
#include "plan/listing.h"
#include "plan/plan_file.h"
#include "report/estimates.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

struct PlanOptions {
  std::string trace, policy;
  std::optional<std::string> output;
  MachineOption machine;
  bool listing = false, json = false;
};

std::string json_of(const Evaluation& evaluation, const Case& input) {
  const bool feasible = evaluation.result.feasible;
  const Plan& plan = evaluation.plan;
  Json report = new_report(input);
  report["policy"] = plan.policy;
  report["feasible"] = feasible;
  report["shortfall"] = json_of(evaluation.result.shortfall);
  report["moves"] = plan.moves();
  report["overcommitted_bytes"] = plan.overcommitted.value;
  report["predicted_seconds"] = plan.predicted_seconds ? Json(*plan.predicted_seconds) : Json(nullptr);
  report["planning_seconds"] = feasible ? Json(evaluation.planning_seconds) : Json(nullptr);
  return to_text(report);
}

std::string plan_table(const Evaluation& evaluation, const Case& input) {
  const Plan& plan = evaluation.plan;
  std::string title = title_of(evaluation, input);
  if (!evaluation.result.feasible) return title;
  const auto evictions = [&](Tier to) {
    return fmt::format("{} ({})", std::ranges::count(plan.evictions, to, &Eviction::to),
                       to_text(evicted_to(to, plan, input.loaded.trace)));
  };
  Table table({{"each iteration", Align::left}, {"", Align::right}});
  table.add_row({"evictions to the SSD", evictions(Tier::ssd)});
  table.add_row({"evictions to host memory", evictions(Tier::host)});
  table.add_row({"prefetches", std::to_string(plan.prefetches.size())});
  if (!plan.recomputations.empty()) table.add_row({"tensors made again", std::to_string(plan.recomputations.size())});
  table.add_row({"beyond the device at most", to_text(plan.overcommitted)});
  table.add_row({"predicted", fmt::format("{:.3f} s", plan.predicted_seconds.value_or(0))});
  const std::string note = estimate_note(input.loaded.trace);
  return fmt::format("{}, planned in {:.3f} s\n\n{}{}{}", title, evaluation.planning_seconds, table.text(),
                     note.empty() ? "" : "\n", note);
}

std::string listing_of(const Evaluation& evaluation, const Case& input) {
  std::string text = estimate_note(input.loaded.trace);
  for (const std::string& line : listing(evaluation.plan, input.loaded.trace, input.lifetimes))
    text += printable(line, line.size()) + '\n';
  return text;
}

Result<int> plan(const PlanOptions& options) {
  if (options.output) TRY_VOID(check_replaced(*options.output, OutputKind::plan, "-o"));
  TRY(const Policy policy, policy_by_name(options.policy));
  TRY(MachineModel machine, options.machine.load());
  TRY(const Case input, load_case(options.trace, std::move(machine)));
  TRY(const Evaluation evaluation, evaluate(policy, input));
  const bool feasible = evaluation.result.feasible;
  if (feasible && options.output) TRY_VOID(save_plan(*options.output, evaluation.plan));
  if (!feasible && options.output) tell(fmt::format("spillway: no plan was written to {}\n", *options.output));
  return print(options.json                  ? json_of(evaluation, input)
               : options.listing && feasible ? listing_of(evaluation, input)
                                             : plan_table(evaluation, input),
               feasible ? kSuccess : kInfeasible);
}

}  // namespace

void add_plan_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("plan", "What to move when, so that an iteration fits a machine");
  command->footer(
      policy_summaries() +
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
