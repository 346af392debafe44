#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "trace/format.h"
#include "trace/g10.h"

namespace spillway {
namespace {

struct ImportOptions {
  std::string path, output;
};

Result<int> import_from_g10(const ImportOptions& options) {
  TRY(const std::string input, g10_file(options.path));
  TRY_VOID(check_new_file(options.output, {input}));
  TRY(const Trace trace, import_g10(input));
  TRY_VOID(save_trace(options.output, trace));
  return print(fmt::format("{}: {} kernels, {} tensors; next: spillway show {}\n", options.output, trace.kernels.size(),
                           trace.tensors.size(), options.output));
}

}  // namespace

void add_import_command(CLI::App& app, int& status) {
  CLI::App* import = app.add_subcommand("import", "Make a trace from another tool's files");
  import->require_subcommand(1);
  import->footer("Example:\n  spillway import g10 results/BERT/statistics -o bert.trace.zst");

  CLI::App* g10 = import->add_subcommand("g10", "The kernels.config of the public G10 artifact");
  g10->footer(
      "Example:\n  spillway import g10 results/BERT/statistics -o bert.trace.zst\n"
      "Phases are read from the kernels' names; a tensor dies after its last use; one whose first use is a read is an "
      "input.");
  auto options = std::make_shared<ImportOptions>();
  g10->add_option("PATH", options->path, "a kernels.config, the same as .zst, or its folder")->required();
  g10->add_option("-o,--output", options->output, "the trace to write; compressed if it ends in .zst")->required();
  g10->callback([options, &status] { status = finish(import_from_g10(*options)); });
}

}  // namespace spillway
