#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/files.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/replaced_file.h"
#include "plan/this_machine.h"
#include "report/progress.h"
#include "reproduce/page.h"
#include "reproduce/reproduction.h"
#include "reproduce/reproduction_json.h"
#include "reproduce/reproduction_table.h"
#include "trace/format.h"

namespace spillway {
namespace {

constexpr Bytes kMostProgram = 1_GiB;

struct ReproduceOptions {
  std::string paper, figure, table, output, cache;
  std::vector<std::string> traces{"."};
  unsigned jobs = 0;
  bool no_cache = false;
  bool no_reasons = false;
  bool sensitivity = false;
  bool json = false;
};

// Another build simulates differently, whatever its version says.
std::string this_program() {
  const auto program = read_file("/proc/self/exe", kMostProgram);
  return std::string(kVersion) + "-" + (program ? trace_hash(*program) : "unknown");
}

// Only a folder that somebody has named must be one.
Result<std::string> cache_folder(const ReproduceOptions& options) {
  if (options.no_cache) return "";
  if (!options.cache.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.cache, error);
    if (error)
      return fail(Errc::io, fmt::format("--cache: {}: {}; name another folder, or say --no-cache", options.cache,
                                        error.message()));
    TRY_VOID(try_to_write(options.cache + "/outcome"));
    return options.cache;
  }
  const std::string folder = user_cache_folder();
  return folder.empty() ? "" : folder + "/reproduce";
}

Result<int> run(const ReproduceOptions& options) {
  TRY(Paper paper, paper_by_name(options.paper));
  TRY_VOID(select_figure(paper, options.table.empty() ? options.figure : "T" + options.table));
  TRY(TracesAtHand at_hand, read_traces(paper, options.traces));
  if (!options.output.empty()) {
    TRY_VOID(check_replaced(options.output, OutputKind::page, "--out"));
    TRY_VOID(try_to_write(options.output));  // It should not fail after all the work.
  }
  TRY(const std::string cache, cache_folder(options));
  const unsigned jobs = options.jobs > 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  std::unique_ptr<Progress> progress;
  TRY(const Reproduction result,
      reproduce(std::move(paper), {.explains_why = !options.no_reasons, .varies = options.sensitivity},
                std::move(at_hand), {.jobs = jobs, .cache_folder = cache, .program = this_program()},
                [&](std::size_t done, std::size_t all) {
                  if (!progress) progress = std::make_unique<Progress>("simulating", all);
                  progress->at(done);
                }));
  progress.reset();
  if (!options.output.empty()) TRY_VOID(write_file(options.output, to_page(result)));
  return print(options.json ? to_json(result) : to_table(result));
}

}  // namespace

void add_reproduce_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("reproduce", "Run a paper's evaluation again, and judge its claims");
  command->footer(
      "Papers: " + paper_names() +
      "\nExamples:\n  spillway reproduce g10 --figure 11 --traces G10-Artifact/results\n"
      "  spillway reproduce g10 --traces traces --out g10.html\n"
      "  python3 examples/models/traces.py deepum -o traces && spillway reproduce deepum --traces traces\n"
      "DIR has the artifact's folders (BERT_Base-256, VIT-1280, ResNet152-1280, ..., with a kernels.config each), or "
      "MODEL.trace files, also with .zst. Models without a trace are left out. examples/models/traces.py makes dry-run "
      "traces: their times are estimates, and all that is made of them says so. Of one model, an artifact's trace is "
      "taken before that in DIR/scaled, and this before that in DIR.");
  auto options = std::make_shared<ReproduceOptions>();
  command->add_option("PAPER", options->paper, paper_names())->required();
  CLI::Option* figure = command->add_option("--figure", options->figure, "one figure and its claims; default: all");
  command->add_option("--table", options->table, "one table and its claims")->excludes(figure);
  command->add_option("--traces", options->traces, "a folder of models' traces; may be given more than once")
      ->type_name("DIR")
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("-o,--out", options->output, "a page of HTML to write, with all figures drawn");
  command->add_option("--jobs", options->jobs, "simulations at a time; default: one for each CPU")
      ->check(CLI::Range(1, 1024));
  command->add_option("--cache", options->cache,
                      "keep results in this folder; default: spillway/reproduce in "
                      "$XDG_CACHE_HOME or ~/.cache");
  command->add_flag("--no-cache", options->no_cache, "simulate all anew, and keep nothing")->excludes("--cache");
  command->add_flag("--no-reasons", options->no_reasons,
                    "leave out the experiments that explain differences: most of the time");
  command->add_flag("--sensitivity", options->sensitivity,
                    "judge each claim again under other assumptions: what faults cost, flash, estimated times");
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback([options, &status] { status = finish(run(*options)); });
}

}  // namespace spillway
