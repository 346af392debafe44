#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/replaced_file.h"
#include "latency/fit.h"
#include "latency/model_file.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/table.h"
#include "trace/format.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

struct FitOptions {
  std::vector<std::string> traces;
  std::string output;
  bool json = false;
};

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

void add_row(Table& table, const std::string& name, const ClassFit& fit) {
  const auto of = [&](double part) { return fit.held_out == 0 ? "-" : percent(part); };
  table.add_row({printable(name), std::to_string(fit.kernels), std::to_string(fit.inputs), std::to_string(fit.held_out),
                 of(fit.network.median), of(fit.network.most_of_nine_in_ten), of(fit.mean.median),
                 of(fit.mean.most_of_nine_in_ten)});
}

std::string table_of(const FitOptions& options, const Fit& fit, double seconds) {
  Table table({{"class", Align::left},
               {"kernels"},
               {"inputs"},
               {"held out"},
               {"median error"},
               {"90th percentile"},
               {"class mean's median"},
               {"90th percentile"}});
  for (const ClassFit& one : fit.classes) add_row(table, one.name, one);
  add_row(table, "all but *", fit.all);
  return fmt::format(
      "{}: {} networks of {} kernels in {} traces, fitted in {:.1f} s\n\n{}\n"
      "Errors are parts of the true times, of kernels with inputs that the network had not seen; -: too few differ.\n"
      "* is for kernels of classes without a network. Next: spillway simulate TRACE --machine a100 --policy "
      "tensile:cold-start={}\n",
      printable(options.output), fit.classes.size(), fit.all.kernels, options.traces.size(), seconds, table.text(),
      printable(options.output));
}

Json json_of(const ClassFit& fit) {
  const auto of = [&](double part) { return fit.held_out == 0 ? Json(nullptr) : Json(part); };
  return {{"class", fit.name},
          {"kernels", fit.kernels},
          {"inputs", fit.inputs},
          {"held_out", fit.held_out},
          {"median_error", of(fit.network.median)},
          {"percentile_90_error", of(fit.network.most_of_nine_in_ten)},
          {"mean_median_error", of(fit.mean.median)},
          {"mean_percentile_90_error", of(fit.mean.most_of_nine_in_ten)}};
}

Json report_of(const FitOptions& options, const std::vector<LoadedTrace>& loaded, const Fit& fit, double seconds) {
  Json report = new_report();
  report["latencies_file"] = options.output;
  report["traces"] = Json::array();
  for (const LoadedTrace& one : loaded)
    report["traces"].push_back({{"name", one.trace.name}, {"hash", one.hash}, {"kernels", one.trace.kernels.size()}});
  report["classes"] = Json::array();
  for (const ClassFit& one : fit.classes) report["classes"].push_back(json_of(one));
  report["all"] = json_of(fit.all);
  report["wall_seconds"] = seconds;
  return report;
}

Result<int> run(const FitOptions& options) {
  TRY_VOID(check_replaced(options.output, OutputKind::latencies, "-o"));
  std::vector<LoadedTrace> loaded;
  for (const std::string& path : options.traces) {
    TRY(LoadedTrace one, load_trace(path));
    if (!one.trace.estimated.empty())
      return fail(Errc::bad_input, fmt::format("cannot learn from {}: its times are estimates ({}); record a run of it",
                                               path, one.trace.estimated));
    loaded.push_back(std::move(one));
  }
  std::vector<const Trace*> traces;
  for (const LoadedTrace& one : loaded) traces.push_back(&one.trace);
  const auto begin = std::chrono::steady_clock::now();
  Progress progress("fitting networks", classes_of(traces));
  const Fit fit = fit_latencies(traces, [&](std::size_t done) { progress.at(done); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  TRY_VOID(save_latencies(options.output, fit.model));
  return print(options.json ? to_text(report_of(options, loaded, fit, seconds)) : table_of(options, fit, seconds));
}

}  // namespace

void add_fit_latencies_command(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("fit-latencies", "Learn from traces how long kernels take, to plan before one ran");
  command->footer(
      "Examples:\n  spillway fit-latencies a.trace b.trace -o machine.latencies\n"
      "  spillway simulate c.trace --machine a100 --policy tensile:cold-start=machine.latencies\n"
      "One small network a class of kernels: those of a name, without a number behind it. It looks at the bytes that a "
      "kernel reads and writes, and at its flops where a trace has them. The traces must be of one machine.\n"
      "The table compares it with the mean time of a class, on kernels with inputs that were held out. How good it is "
      "on another program, only that program's trace can tell: leave that out here, and compare tensile with and "
      "without cold-start on it.");
  auto options = std::make_shared<FitOptions>();
  command->add_option("TRACE", options->traces, "recorded or imported traces, .trace or .trace.zst")->required();
  command->add_option("-o,--output", options->output, "the file of latencies to write")->required();
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback([options, &status] { status = finish(run(*options)); });
}

}  // namespace spillway
