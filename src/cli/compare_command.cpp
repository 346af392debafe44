#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/evaluation.h"
#include "cli/job_option.h"
#include "cli/machine_option.h"
#include "cli/noise_option.h"
#include "cli/replaced_file.h"
#include "evaluation/cold_start.h"
#include "pages/page.h"
#include "report/estimates.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/table.h"

namespace spillway {
namespace {

struct CompareOptions {
  std::string trace;
  std::vector<std::string> policies;
  MachineOption machine;
  JobOption jobs;
  NoiseOption noise;
  std::string html;
  bool json = false;
};

std::string comparison_table(const std::vector<Evaluation>& evaluations, const Case& input) {
  Table table({{"policy", Align::left},
               {"iteration"},
               {"of ideal"},
               {"stall"},
               {"stalled kernels"},
               {"faults"},
               {"out"},
               {"in"},
               {"device peak"}});
  const std::string estimate = estimate_note(input.loaded.trace);
  std::string notes = estimate.empty()
                          ? fmt::format("Kernel times are the recording's ({}); the machine decides what moves cost.\n",
                                        printable(input.loaded.trace.source))
                          : estimate;
  notes += noise_text(input);
  for (const Evaluation& evaluation : evaluations) {
    const SimulationResult& result = evaluation.result;
    if (!result.feasible) {
      table.add_row({evaluation.plan.policy, "infeasible", "", "", "", "", "", "", ""});
      notes += fmt::format("{} needs {}.\n", evaluation.plan.policy, missing_text(result.shortfall));
      continue;
    }
    const Bytes out = result.moved(Tier::device, Tier::host) + result.moved(Tier::device, Tier::ssd);
    const Bytes in = result.moved(Tier::host, Tier::device) + result.moved(Tier::ssd, Tier::device);
    table.add_row({evaluation.plan.policy, fmt::format("{:.3f} s", seconds(result.iteration)),
                   fmt::format("{:.1f} %", result.percent_of_ideal()), fmt::format("{:.3f} s", seconds(result.stall())),
                   std::to_string(result.stalled_kernels), std::to_string(result.faults), to_text(out), to_text(in),
                   to_text(result.peak.device)});
    if (!result.steady)
      notes += fmt::format("{} never repeats itself: means of the last 10 of 20 iterations.\n", evaluation.plan.policy);
  }
  return fmt::format("{} on {} ({} device, {} host memory, {} SSD)\n\n{}\n{}", printable(input.loaded.trace.name),
                     text_of(input.machine), to_text(input.machine.device.memory), to_text(input.machine.host_memory()),
                     to_text(input.machine.ssd_capacity()), table.text(), notes);
}

// "a:x=1,y=2,b" stands for the policies a:x=1,y=2 and b.
std::vector<std::string> joined(const std::vector<std::string>& parts) {
  std::vector<std::string> names;
  for (const std::string& part : parts)
    if (!names.empty() && part.find('=') < part.find(':'))
      names.back() += ',' + part;
    else
      names.push_back(part);
  return names;
}

Result<int> run(const CompareOptions& options) {
  TRY_VOID(options.jobs.check(options.trace));
  TRY(const auto noise, options.noise.read());
  TRY_VOID(options.jobs.refuse(noise));
  if (!options.html.empty()) {
    if (options.jobs.is_used()) return fail(Errc::usage, "--html draws one trace; leave it out, or the --job");
    TRY_VOID(check_replaced(options.html, OutputKind::page, "--html"));
    TRY_VOID(try_to_write(options.html));
  }
  std::vector<Policy> policies;
  for (const std::string& name : joined(options.policies)) {
    TRY(const Policy policy, policy_by_name(name));
    TRY_VOID(cold_start_of(policy));  // An error should come before all the work.
    policies.push_back(policy);
  }
  if (policies.empty()) policies.assign(kPolicies.begin(), kPolicies.end());
  TRY(MachineModel machine, options.machine.load());
  if (options.jobs.is_used()) return run_jobs(options.jobs, policies, std::move(machine), options.json);
  TRY(const Case input, load_case(options.trace, std::move(machine), noise));
  std::vector<Evaluation> evaluations;
  std::vector<RunTimeline> timelines;  // for a page, of those that are feasible
  std::vector<std::string> infeasible;
  Progress progress("comparing policies", policies.size());
  for (const Policy& policy : policies) {
    RunTimeline timeline;
    TRY(Evaluation evaluation, evaluate(policy, input, options.html.empty() ? nullptr : &timeline));
    if (!options.html.empty() && evaluation.result.feasible) timelines.push_back(std::move(timeline));
    if (!evaluation.result.feasible) infeasible.push_back(evaluation.plan.policy);
    evaluations.push_back(std::move(evaluation));
    progress.at(evaluations.size());
  }
  if (!timelines.empty()) TRY_VOID(write_file(options.html, comparison_page_of(timelines, infeasible)));
  const bool any = std::ranges::any_of(evaluations, [](const Evaluation& one) { return one.result.feasible; });
  const int status = any ? kSuccess : kInfeasible;
  if (!options.json) {
    std::string text = comparison_table(evaluations, input);
    if (!options.html.empty() && timelines.empty()) text += fmt::format("No page was written to {}.\n", options.html);
    return print(text, status);
  }
  auto report = new_report(input);
  for (const Evaluation& evaluation : evaluations)
    append_result(report["results"].emplace_back(new_report(input)), evaluation);
  return print(to_text(report), status);
}

}  // namespace

void add_compare_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("compare", "All policies, or some, side by side on one machine");
  command->footer(
      policy_summaries() +
      "Examples:\n  spillway compare model.trace --machine a100\n"
      "  spillway compare model.trace --machine a100 --set device.memory=20GiB --policies uvm,g10\n"
      "  spillway compare --job a.trace --job b.trace:arrival=3s --machine a6000 --policies uvm,capuchin,tensile\n"
      "`out` and `in` are the bytes that leave and reach the device in a steady iteration. Status 3: none of "
      "these policies can do with the memory (ideal always can).");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("TRACE", options->trace, "a .trace or .trace.zst file");
  options->jobs.add_to(*command);
  command->add_option("--policies", options->policies, "some of them, with commas between; default: all")
      ->delimiter(',');
  options->machine.add_to(*command);
  options->noise.add_to(*command);
  command->add_option("--html", options->html, "writes a page, too, that draws the policies on one clock")
      ->type_name("OUT");
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback([options, &status] { status = finish(run(*options)); });
}

}  // namespace spillway
