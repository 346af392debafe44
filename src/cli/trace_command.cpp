#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/files.h"
#include "cli/command.h"
#include "cli/gpu_option.h"
#include "cli/script.h"
#include "session/launch.h"
#include "session/output_file.h"
#include "session/read_report.h"

namespace spillway {
namespace {

struct TraceOptions {
  std::string output;
  std::uint64_t iteration = 0;
  std::string program;
  std::vector<std::string> command;
};

Result<int> trace(const TraceOptions& options) {
  TRY(const std::string file, check_output("-o", options.output));
  TRY(SharedSession session, SharedSession::create());
  session->config.mode = SessionMode::trace;
  session->config.iteration = options.iteration;
  TRY_VOID(set_text(session->config.record_path, file, "-o"));
  TRY(const Supervised supervised, launch(session, options.command));
  if (!supervised.started) return supervised.exit_status;
  const RunReport report = read_report(*session, supervised);
  for (const std::string& notice : report.notices) tell(fmt::format("spillway: note: {}\n", notice));
  // The session of a trace knows nothing of GPUs.
  if (const auto gpu = gpu_of("auto"); gpu && *gpu)
    tell(
        "spillway: note: tensors on a GPU are not in a trace; a script that computes there is recorded by `spillway "
        "run --record DIR`\n");
  if (!report.recorded.empty()) {
    tell(fmt::format("spillway: the trace is in {}; look at it with: spillway show {}\n", options.output,
                     options.output));
    return supervised.exit_status;
  }
  const int status = report_error({.code = Errc::io,
                                   .message = fmt::format("no trace was written to {}: {}", options.output,
                                                          report.error.empty() ? report.not_recorded : report.error)});
  return supervised.exit_status != 0 ? supervised.exit_status : status;
}

}  // namespace

void add_trace_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("trace", "Record one training iteration of a PyTorch script");
  command->footer(
      "Examples:\n"
      "  spillway trace -o model.trace -- python3 train.py\n"
      "  spillway trace -o model.trace.zst --iteration 3 -- python3 train.py\n"
      "The script runs as always, with all the memory it wants, to its end. An iteration goes from the end of one "
      "optimizer\n"
      "step to the end of another such that two in a row are equal; durations are medians over those seen.\n"
      "Exit status: the script's own, or 1 if no trace came out of it.");
  auto options = std::make_shared<TraceOptions>();
  command->add_option("-o,--output", options->output, "a .trace or .trace.zst file")->required()->type_name("FILE");
  command
      ->add_option("--iteration", options->iteration,
                   "take the one after the N-th optimizer step as it is, though none repeats")
      ->check(CLI::Range(1u, 1'000'000'000u))
      ->type_name("N");
  add_script(*command, options->program);
  command->callback([options, command, &status] {
    options->command = script_of(*command, options->program);
    status = finish(trace(*options));
  });
}

}  // namespace spillway
