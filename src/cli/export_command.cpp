#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/replaced_file.h"
#include "import/chakra_writer.h"
#include "trace/compressed.h"
#include "trace/format.h"

namespace spillway {
namespace {

struct ExportOptions {
  std::string trace, output;
  std::optional<std::string> profile;
};

Result<int> export_chakra(const ExportOptions& options) {
  TRY_VOID(check_replaced(options.output, OutputKind::execution_trace, "-o"));
  if (options.profile) TRY_VOID(check_replaced(*options.profile, OutputKind::profile, "--profile"));
  if (options.profile && are_same_file(*options.profile, options.output))
    return fail(Errc::usage, fmt::format("--profile {}: -o names the same file; give them two", *options.profile));
  TRY(const LoadedTrace loaded, load_trace(options.trace));
  TRY(const ChakraFiles files, to_chakra(loaded.trace));
  TRY_VOID(write_maybe_compressed(options.output, files.execution_trace));
  if (!options.profile)
    return print(fmt::format("{}: {} operators, without their times; --profile FILE writes those\n", options.output,
                             loaded.trace.kernels.size()));
  TRY_VOID(write_maybe_compressed(*options.profile, files.profile));
  return print(fmt::format(
      "{}: {} operators; {}: their times{}\n", options.output, loaded.trace.kernels.size(), *options.profile,
      loaded.trace.estimated.empty() ? "" : fmt::format(", which are estimates ({})", loaded.trace.estimated)));
}

}  // namespace

void add_export_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("export", "Make another tool's files of a trace");
  command->require_subcommand(1);
  constexpr const char* kExample = "spillway export chakra model.trace -o et.json --profile profile.json";
  command->footer(fmt::format("Example:\n  {}", kExample));
  CLI::App* chakra = command->add_subcommand("chakra", "A Chakra host trace, as PyTorch's observer writes it");
  chakra->footer(fmt::format(
      "Examples:\n  spillway export chakra model.trace -o et.json\n  {}\n"
      "The execution trace says which tensors operators use. The profile (Kineto's) says when they run on one GPU, "
      "and\n"
      "when memory is given and given back. `spillway import chakra et.json profile.json` makes a trace of both again.",
      kExample));
  auto options = std::make_shared<ExportOptions>();
  chakra->add_option("TRACE", options->trace, "a .trace or .trace.zst file")->required();
  chakra->add_option("-o,--output", options->output, "the execution trace to write; compressed if it ends in .zst")
      ->required();
  chakra->add_option("--profile", options->profile, "the profile to write, too");
  chakra->callback([options, &status] { status = finish(export_chakra(*options)); });
}

}  // namespace spillway
