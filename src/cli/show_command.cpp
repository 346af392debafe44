#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/show_plan.h"
#include "report/show.h"
#include "trace/format.h"

namespace spillway {
namespace {

struct ShowOptions {
  std::string trace;
  bool json = false;
};

Result<int> show(const ShowOptions& options) {
  if (names_plan(options.trace)) {
    TRY(const std::string shown, show_plan(options.trace, options.json));
    TRY_VOID(print(shown));
    return kSuccess;
  }
  if (options.trace.ends_with(".journal"))
    return fail(Errc::bad_input,
                fmt::format("{} is a run's journal; `spillway replay {}` reads it", options.trace, options.trace));
  TRY(const LoadedTrace loaded, load_trace(options.trace));
  TRY_VOID(print(options.json ? show_json(loaded) : show_table(loaded)));
  return kSuccess;
}

}  // namespace

void add_show_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("show", "What one training iteration looks like, or a plan for it");
  command->footer(
      "Examples:\n  spillway show model.trace\n  spillway show model.trace.zst --json\n"
      "  spillway show records/blocks.plan      a plan, with the trace that lies beside it\n"
      "Peak live is what the iteration needs with all memory; the largest working set is the least for policies whose\n"
      "kernels cannot fault (g10-gds, g10-host), others do with less;\n"
      "inactive periods are the times in which a tensor can be somewhere else.");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("TRACE", options->trace, "a .trace, .trace.zst or .plan file")->required();
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback([options, &status] { status = finish(show(*options)); });
}

}  // namespace spillway
