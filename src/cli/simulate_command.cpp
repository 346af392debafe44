#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/evaluation.h"
#include "cli/job_option.h"
#include "cli/machine_option.h"
#include "cli/noise_option.h"
#include "cli/replaced_file.h"
#include "plan/plan_file.h"
#include "report/estimates.h"
#include "report/json.h"
#include "report/table.h"
#include "timeline/timeline_file.h"

namespace spillway {
namespace {

struct SimulateOptions {
  std::string trace, policy, plan, timeline;
  MachineOption machine;
  JobOption jobs;
  NoiseOption noise;
  bool kernels = false;
  bool json = false;
};

std::string kernel_table(const SimulationResult& result, const Trace& trace) {
  Table table({{"kernel"}, {"name", Align::left}, {"time"}, {"waited"}, {"slowdown"}, {"moving meanwhile"}});
  for (const SimulatedKernel& one : result.kernels) {
    constexpr std::size_t kWidest = 60;
    const std::string name = printable(trace.kernels[one.kernel.value].name, kWidest);
    table.add_row({std::to_string(one.kernel.value), one.is_replay ? name + " (replay)" : name, to_text(one.duration),
                   to_text(one.wait), fmt::format("{:.2f}", one.slowdown()), to_text(one.hidden)});
  }
  return table.text();
}

nlohmann::ordered_json json_of(const SimulatedKernel& kernel, const Trace& trace) {
  return {{"kernel", kernel.kernel.value},
          {"name", trace.kernels[kernel.kernel.value].name},
          {"replay", kernel.is_replay},
          {"seconds", seconds(kernel.duration)},
          {"wait_seconds", seconds(kernel.wait)},
          {"slowdown", kernel.slowdown()},
          {"hidden_seconds", seconds(kernel.hidden)}};
}

std::string simulation_table(const Evaluation& evaluation, const Case& input) {
  const SimulationResult& result = evaluation.result;
  std::string title = title_of(evaluation, input);
  if (!result.feasible) return title;
  Table table({{"steady iteration", Align::left}, {"", Align::right}});
  const auto add = [&](std::string what, std::string value) { table.add_row({std::move(what), std::move(value)}); };
  add("time", fmt::format("{:.3f} s", seconds(result.iteration)));
  add("of ideal", fmt::format("{:.1f} % of {:.3f} s", result.percent_of_ideal(), seconds(result.ideal)));
  const auto in_kernels = [](Nanos time, std::uint64_t kernels) {
    return fmt::format("{:.3f} s in {} kernels", seconds(time), kernels);
  };
  if (result.recomputed_kernels == 0) {
    add("stall", in_kernels(result.stall(), result.stalled_kernels));
  } else {
    add("stall", fmt::format("{:.3f} s", seconds(result.stall())));
    add("  waiting", in_kernels(excess(result.stall(), result.recompute), result.stalled_kernels));
    add("  computing again", in_kernels(result.recompute, result.recomputed_kernels));
  }
  add("moving while computing", fmt::format("{:.3f} s", seconds(result.hidden)));
  add("page faults", fmt::format("{} blocks", result.faults));
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to && result.moved(from, to) > Bytes{})
        add(fmt::format("{} to {}", to_text(from), to_text(to)), to_text(result.moved(from, to)));
  for (const Tier tier : kTiers) add(fmt::format("{} peak", to_text(tier)), to_text(result.peak[tier]));
  if (result.flash) {
    const FlashWear::Part &part = result.flash->iteration, &all = result.flash->all;
    add("written to flash", fmt::format("{}, {} erases", to_text(part.written), part.erases));
    add("write amplification",
        fmt::format("{:.3f}, {:.3f} since the first iteration", part.write_amplification, all.write_amplification));
    add("its flash endures",
        result.flash->years ? fmt::format("{:.3g} years of this", *result.flash->years) : "for ever");
  }
  add("first iteration", fmt::format("{:.3f} s", seconds(result.cold_iteration)));
  if (result.skipped_commands > 0)
    add("plan's commands skipped", fmt::format("{} in {} iterations", result.skipped_commands, result.iterations));
  const std::string_view note =
      result.steady ? "" : "\nIts iterations never become equal: the figures are means of the last 10 of 20.\n";
  const std::string noise = estimate_note(input.loaded.trace) + noise_text(input);
  return fmt::format("{}, simulated in {:.3f} s\n\n{}{}{}{}", title, evaluation.simulating_seconds, table.text(), note,
                     noise.empty() ? "" : "\n", noise);
}

Result<> check_timeline(const SimulateOptions& options) {
  TRY_VOID(check_replaced(options.timeline, OutputKind::timeline, "--timeline"));
  return try_to_write(options.timeline);
}

Result<int> run(const SimulateOptions& options) {
  TRY_VOID(options.jobs.check(options.trace));
  if (options.kernels && options.jobs.is_used())
    return fail(Errc::usage, "--kernels lists those of one trace; leave it out, or simulate TRACE without --job");
  if (!options.timeline.empty() && options.jobs.is_used())
    return fail(Errc::usage, "--timeline is of one trace; leave it out, or simulate TRACE without --job");
  if (!options.timeline.empty()) TRY_VOID(check_timeline(options));
  TRY(const auto noise, options.noise.read());
  TRY_VOID(options.jobs.refuse(noise));
  TRY(MachineModel machine, options.machine.load());
  std::optional<Plan> plan;
  std::optional<Policy> policy;
  if (options.plan.empty()) {
    TRY(policy, policy_by_name(options.policy));
  } else {
    TRY(plan, load_plan(options.plan));
  }
  if (options.jobs.is_used()) {
    if (!policy) return fail(Errc::usage, "several jobs need a --policy; a --plan is one job's");
    return run_jobs(options.jobs, {*policy}, std::move(machine), options.json);
  }
  TRY(const Case input, load_case(options.trace, std::move(machine), noise));
  std::optional<RunTimeline> timeline;
  if (!options.timeline.empty()) timeline.emplace();
  RunTimeline* const recorded = timeline ? &*timeline : nullptr;
  TRY(const Evaluation evaluation,
      plan ? evaluate(*std::move(plan), options.plan, input, recorded) : evaluate(*policy, input, recorded));
  if (timeline && evaluation.result.feasible) TRY_VOID(save_timeline(options.timeline, *timeline));
  const int status = evaluation.result.feasible ? kSuccess : kInfeasible;
  if (!options.json) {
    std::string text = simulation_table(evaluation, input);
    if (timeline && !evaluation.result.feasible)
      text += fmt::format("No timeline was written to {}.\n", options.timeline);
    if (options.kernels && evaluation.result.feasible) text += '\n' + kernel_table(evaluation.result, input.played());
    return print(text, status);
  }
  auto report = new_report(input);
  append_result(report, evaluation);
  if (options.kernels) {
    report["kernels"] = nlohmann::ordered_json::array();
    for (const SimulatedKernel& one : evaluation.result.kernels)
      report["kernels"].push_back(json_of(one, input.played()));
  }
  return print(to_text(report), status);
}

}  // namespace

void add_simulate_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("simulate", "How long an iteration takes on a machine under one policy");
  command->footer(
      policy_summaries() +
      "Examples:\n  spillway simulate model.trace --policy uvm --machine a100\n"
      "  spillway simulate model.trace --plan model.plan --machine a100 --set ssd.count=2\n"
      "  spillway simulate --job a.trace --job b.trace:weight=2,arrival=3s,iterations=50 --policy tensile --machine "
      "a6000\n"
      "Runs iterations until two are equal (20 at most). Status 3: the memory cannot suffice; the missing bytes are "
      "said.");
  auto options = std::make_shared<SimulateOptions>();
  command->add_option("TRACE", options->trace, "a .trace or .trace.zst file");
  options->jobs.add_to(*command);
  CLI::Option_group* what = command->add_option_group("what decides");
  what->add_option("--policy", options->policy, policy_names());
  what->add_option("--plan", options->plan, "a plan that `spillway plan -o` has written, edited or not");
  what->require_option(1);
  options->machine.add_to(*command);
  options->noise.add_to(*command);
  command->add_flag("--kernels", options->kernels,
                    "a row for each kernel, too: how long it waited, what moved meanwhile");
  command
      ->add_option("--timeline", options->timeline,
                   "writes what happened in the last iteration, for `spillway show` to draw (.timeline, .timeline.zst)")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback([options, &status] { status = finish(run(*options)); });
}

}  // namespace spillway
