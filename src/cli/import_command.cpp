#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "import/dtr.h"
#include "trace/compressed.h"
#include "trace/format.h"
#include "trace/g10.h"

namespace spillway {
namespace {

struct ImportOptions {
  std::string path, output;
};

// A kind of file: the sub-command's name and help, the file that a path means, and its reader.
struct Kind {
  const char *name, *summary, *example, *inferred, *path;
  Result<std::string> (*file)(const std::string& path);
  Result<Trace> (*read)(const std::string& file);
};

Result<std::string> same(const std::string& path) { return path; }

// What people call the trace: the file's name, without what its kind adds.
std::string name_of(const std::string& file) {
  std::filesystem::path path(file);
  while (path.extension() == ".zst" || path.extension() == ".log") path.replace_extension();
  return path.filename();
}

Result<Trace> import_dtr(const std::string& file) {
  TRY(const std::string text, read_maybe_compressed(file, kMostTraceBytes));
  return parse_dtr(text, file, name_of(file));
}

constexpr Kind kKinds[] = {
    {.name = "g10",
     .summary = "The kernels.config of the public G10 artifact",
     .example = "spillway import g10 results/BERT/statistics -o bert.trace.zst",
     .inferred = "Phases are read from the kernels' names; a tensor dies after its last use; one whose first use is a "
                 "read is an input.",
     .path = "a kernels.config, the same as .zst, or its folder",
     .file = g10_file,
     .read = import_g10},
    {.name = "dtr",
     .summary = "A log of DTR's prototype, as its simulator simrd reads it",
     .example = "spillway import dtr logs/unet-6-default.log -o unet.trace.zst",
     .inferred = "The iteration begins at START. Constants that have a name at the end are weights, the others inputs; "
                 "what is mutated is changed in place; calls that only make views are the host's time.",
     .path = "a .log with a JSON object on each line, or the same as .zst",
     .file = same,
     .read = import_dtr},
};

Result<int> import_file(const Kind& kind, const ImportOptions& options) {
  TRY(const std::string input, kind.file(options.path));
  TRY_VOID(check_new_file(options.output, {input}));
  TRY(const Trace trace, kind.read(input));
  TRY_VOID(save_trace(options.output, trace));
  return print(fmt::format("{}: {} kernels, {} tensors; next: spillway show {}\n", options.output, trace.kernels.size(),
                           trace.tensors.size(), options.output));
}

}  // namespace

void add_import_command(CLI::App& app, int& status) {
  CLI::App* import = app.add_subcommand("import", "Make a trace from another tool's files");
  import->require_subcommand(1);
  std::string examples = "Examples:";
  for (const Kind& kind : kKinds) {
    examples += fmt::format("\n  {}", kind.example);
    CLI::App* command = import->add_subcommand(kind.name, kind.summary);
    command->footer(fmt::format("Example:\n  {}\n{}", kind.example, kind.inferred));
    auto options = std::make_shared<ImportOptions>();
    command->add_option("PATH", options->path, kind.path)->required();
    command->add_option("-o,--output", options->output, "the trace to write; compressed if it ends in .zst")
        ->required();
    command->callback([options, &kind, &status] { status = finish(import_file(kind, *options)); });
  }
  import->footer(examples);
}

}  // namespace spillway
