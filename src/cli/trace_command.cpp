#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/gpu_option.h"
#include "cli/machine_option.h"
#include "cli/replaced_file.h"
#include "cli/script.h"
#include "session/launch.h"
#include "session/output_file.h"
#include "session/read_report.h"

namespace spillway {
namespace {

struct TraceOptions {
  std::string output;
  std::uint64_t iteration = 0;
  bool dry_run = false;
  MachineOption machine{.name = "a100", .overrides = {}};
  double ideal_seconds = 0;
  std::string program;
  std::vector<std::string> command;
};

// The machine and what of it was changed, as far as there is room: "a100 with device.gflops=312000". A file that names
// no machine is one by its own name, wherever it lies.
std::string name_with_changes(const MachineModel& machine, std::string_view file, std::size_t room) {
  constexpr std::string_view kMore = ", and more";
  std::string name = machine.name == file ? std::filesystem::path(file).stem().string() : machine.name;
  for (const std::string& change : machine.overrides) {
    const std::string next = fmt::format("{} with {}", name, change);
    if (next.size() + kMore.size() > room) return name.append(kMore);
    name = next;
  }
  return name;
}

Result<> set_up_dry_run(const TraceOptions& options, SessionConfig& config) {
  TRY(const MachineModel machine, options.machine.load());
  if (!machine.device.rates.are_known())
    return fail(Errc::usage,
                fmt::format("cannot estimate how long kernels take on {}: nobody has said how fast it computes; add "
                            "--set device.gflops=19500 --set device.bandwidth=1.555TB/s with its own figures",
                            machine.name));
  config.mode = SessionMode::dry_run;
  config.dry_rates = machine.device.rates;
  config.dry_ideal_ns = static_cast<std::uint64_t>(std::llround(options.ideal_seconds * 1e9));
  return set_text(config.dry_machine, name_with_changes(machine, options.machine.file(), config.dry_machine.size() - 1),
                  "the machine's name");
}

constexpr std::string_view kNoValues =
    "if the script failed because it read a value: in a dry run tensors have shapes but no values, so leave out what "
    "reads one (item(), tolist(), .cpu(), a tensor in an `if`) where tensor.is_meta";
constexpr std::string_view kNoMetaTensors =
    "the script made no tensors on PyTorch's device `meta`, which is all that a dry run sees: make model and data "
    "there "
    "(torch.set_default_device('meta'), or device='meta')";

std::string why_no_trace(const TraceOptions& options, const RunReport& report) {
  if (!report.error.empty()) return report.error;
  if (!options.dry_run) return report.not_recorded;
  if (!report.made_tensors) return std::string(kNoMetaTensors);
  return report.exit_status == 0 ? report.not_recorded : fmt::format("{}; {}", report.not_recorded, kNoValues);
}

Result<int> trace(const TraceOptions& options) {
  TRY_VOID(check_replaced(options.output, OutputKind::trace, "-o"));
  if (std::isnan(options.ideal_seconds))
    return fail(Errc::usage, "--scale-ideal: nan is no time; say how many seconds");
  TRY(const std::string file, check_output("-o", options.output));
  TRY(SharedSession session, SharedSession::create());
  session->config.mode = SessionMode::trace;
  session->config.iteration = options.iteration;
  if (options.dry_run) TRY_VOID(set_up_dry_run(options, session->config));
  TRY_VOID(set_text(session->config.record_path, file, "-o"));
  TRY(const Supervised supervised, launch(session, options.command));
  if (!supervised.started) return supervised.exit_status;
  const RunReport report = read_report(*session, supervised);
  for (const std::string& notice : report.notices) tell(fmt::format("spillway: note: {}\n", notice));
  // The session of a trace knows nothing of GPUs.
  if (const auto gpu = gpu_of("auto"); !options.dry_run && gpu && *gpu)
    tell(
        "spillway: note: tensors on a GPU are not in a trace; a script that computes there is recorded by `spillway "
        "run --record DIR`\n");
  if (!report.recorded.empty()) {
    tell(fmt::format("spillway: the trace is in {}; look at it with: spillway show {}\n", options.output,
                     options.output));
    return supervised.exit_status;
  }
  const int status = report_error(
      {.code = Errc::io,
       .message = fmt::format("no trace was written to {}: {}", options.output, why_no_trace(options, report))});
  return supervised.exit_status != 0 ? supervised.exit_status : status;
}

}  // namespace

void add_trace_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("trace", "Record one training iteration of a PyTorch script");
  command->footer(
      "Examples:\n"
      "  spillway trace -o model.trace -- python3 train.py\n"
      "  spillway trace -o model.trace.zst --iteration 3 -- python3 train.py\n"
      "  spillway trace --dry-run --machine a100 -o model.trace -- python3 train.py --device meta\n"
      "The script runs as always, with all the memory it wants, to its end. An iteration goes from the end of one "
      "optimizer\n"
      "step to the end of another such that two in a row are equal; durations are medians over those seen.\n"
      "A dry run is of a script that makes its tensors on PyTorch's device `meta`: nothing is computed or allocated, "
      "kernels'\n"
      "times are estimated for a machine, and all that is made of the trace says so.\n"
      "Exit status: the script's own, or 1 if no trace came out of it.");
  auto options = std::make_shared<TraceOptions>();
  command->add_option("-o,--output", options->output, "a .trace or .trace.zst file")->required()->type_name("FILE");
  command
      ->add_option("--iteration", options->iteration,
                   "take the one after the N-th optimizer step as it is, though none repeats")
      ->check(CLI::Range(1u, 1'000'000'000u))
      ->type_name("N");
  CLI::Option* dry = command->add_flag("--dry-run", options->dry_run,
                                       "record tensors on PyTorch's device `meta`, which take no memory");
  command
      ->add_option("--machine", options->machine.name,
                   "whose kernels' times are estimated: a preset (see `spillway machines`), or a FILE.toml")
      ->capture_default_str()
      ->needs(dry);
  command->add_option("--set", options->machine.overrides, "change one value of the machine: device.gflops=312000")
      ->allow_extra_args(false)
      ->needs(dry);
  command
      ->add_option("--scale-ideal", options->ideal_seconds,
                   "stretch the estimates so that the iteration takes this long, as is known from elsewhere")
      ->check(CLI::Range(1e-6, 1e8))
      ->type_name("SECONDS")
      ->needs(dry);
  add_script(*command, options->program);
  command->callback([options, command, &status] {
    options->command = script_of(*command, options->program);
    status = finish(trace(*options));
  });
}

}  // namespace spillway
