#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/replaced_file.h"
#include "import/chakra.h"
#include "import/dtr.h"
#include "import/memory_snapshot.h"
#include "import/triosim.h"
#include "trace/compressed.h"
#include "trace/format.h"
#include "trace/g10.h"

namespace spillway {
namespace {

using Files = std::vector<std::string>;

struct ImportOptions {
  Files files;
  std::string output;
};

// A kind of file: the sub-command's name and help, how many it takes, and their reader.
struct Kind {
  const char *name, *summary, *example, *inferred, *files;
  int fewest = 1, most = 1;
  Result<Trace> (*read)(const Files& files);
};

// What people call the trace: the file's name, without what its kind adds.
std::string name_of_file(const std::string& file) {
  std::filesystem::path path(file);
  for (const std::string_view ending : {".zst", ".log", ".json", ".csv", ".pickle", ".pkl"})
    if (path.extension() == ending) path.replace_extension();
  return path.filename();
}

Result<Trace> import_dtr(const Files& files) {
  TRY(const std::string text, read_maybe_compressed(files[0], kMostTraceBytes));
  return parse_dtr(text, files[0], name_of_file(files[0]));
}

Result<Trace> import_chakra(const Files& files) {
  if (files.size() < 2)
    return fail(Errc::usage,
                fmt::format("cannot import {}: it says which tensors operators use, not when; name the profile of the "
                            "same run, too: spillway import chakra {} PROFILE.json -o TRACE",
                            files[0], files[0]));
  TRY(const std::string record, read_maybe_compressed(files[0], kMostTraceBytes));
  TRY(const std::vector<EtNode> nodes, parse_execution_trace(record, files[0]));
  TRY(const std::string profile, read_maybe_compressed(files[1], kMostTraceBytes));
  TRY(const Kineto kineto, parse_kineto(profile, files[1]));
  return join_chakra(nodes, kineto, files[0], name_of_file(files[0]));
}

Result<Trace> import_kineto(const Files& files) {
  if (files.size() < 2)
    return fail(Errc::usage,
                fmt::format("cannot import {}: a profile says when operators run and how much memory they make. Which "
                            "tensors they use is not in it: 'Input Dims' are shapes without addresses. Record an "
                            "execution trace of the same run, too: torch.profiler.profile(..., "
                            "execution_trace_observer=ExecutionTraceObserver().register_callback(\"et.json\")), then "
                            "spillway import kineto {} et.json -o TRACE",
                            files[0], files[0]));
  return import_chakra({files[1], files[0]});
}

Result<Trace> import_memory_snapshot(const Files& files) {
  TRY(const std::string pickle, read_maybe_compressed(files[0], kMostTraceBytes));
  TRY(std::vector<KinetoMemory> memory, parse_memory_snapshot(pickle, files[0]));
  if (files.size() == 1)
    return fail(
        Errc::usage,
        fmt::format("cannot import {}: a memory snapshot says when memory is given and given back. Which kernels "
                    "run, when, and which tensors they use is not in it. Record a profile and an execution "
                    "trace of the same run, too (spillway import kineto --help), then spillway import "
                    "memory-snapshot {} PROFILE.json ET.json -o TRACE",
                    files[0], files[0]));
  if (files.size() == 2)
    return fail(Errc::usage,
                fmt::format("cannot import {}: neither it nor {} says which tensors operators use. The one has "
                            "addresses without operators, the other operators without addresses, and sizes do not "
                            "tell: many tensors have the same. Record an execution trace of the same run, too "
                            "(spillway import kineto --help), then spillway import memory-snapshot {} {} ET.json -o "
                            "TRACE",
                            files[0], files[1], files[0], files[1]));
  TRY(const std::string profile, read_maybe_compressed(files[1], kMostTraceBytes));
  TRY(Kineto kineto, parse_kineto(profile, files[1]));
  TRY(const std::string record, read_maybe_compressed(files[2], kMostTraceBytes));
  TRY(const std::vector<EtNode> nodes, parse_execution_trace(record, files[2]));
  kineto = with_snapshot(std::move(kineto), std::move(memory), files[0]);
  return join_chakra(nodes, kineto, files[2], name_of_file(files[0]));
}

Result<Trace> import_triosim(const Files& files) {
  TRY(const std::string operators, read_maybe_compressed(files[0], kMostTraceBytes));
  TRY(const std::string tensors, read_maybe_compressed(files[1], kMostTraceBytes));
  return parse_triosim(operators, tensors, files[0], files[1], name_of_file(files[0]));
}

constexpr const char* kPyTorch =
    "Record both at once:\n"
    "  et = torch.profiler.ExecutionTraceObserver().register_callback(\"et.json\")\n"
    "  with torch.profiler.profile(profile_memory=True, record_shapes=True, execution_trace_observer=et) as prof:\n"
    "      train_one_iteration()\n"
    "  prof.export_chrome_trace(\"profile.json\")\n"
    "Kernels are the outermost operators. The execution trace says which tensors they use, the profile when, and when\n"
    "memory is freed. On a GPU a kernel takes the time of all that its operator launched.";

constexpr Kind kKinds[] = {
    {.name = "g10",
     .summary = "The kernels.config of the public G10 artifact",
     .example = "spillway import g10 results/BERT/statistics -o bert.trace.zst",
     .inferred = "Phases are read from the kernels' names; a tensor dies after its last use; one whose first use is a "
                 "read is an input.",
     .files = "a kernels.config, the same as .zst, or its folder",
     .read = [](const Files& files) { return import_g10(files[0]); }},
    {.name = "dtr",
     .summary = "A log of DTR's prototype, as its simulator simrd reads it",
     .example = "spillway import dtr logs/unet-6-default.log -o unet.trace.zst",
     .inferred = "The iteration begins at START. Constants that have a name at the end are weights, the others inputs; "
                 "what is mutated is changed in place; calls that only make views are the host's time.",
     .files = "a .log with a JSON object on each line, or the same as .zst",
     .read = import_dtr},
    {.name = "kineto",
     .summary = "A profile of PyTorch's (Kineto, a Chrome trace) and the execution trace of the same run",
     .example = "spillway import kineto profile.json et.json -o model.trace.zst",
     .inferred = kPyTorch,
     .files = "the profile, then the execution trace",
     .most = 2,
     .read = import_kineto},
    {.name = "chakra",
     .summary = "An execution trace of PyTorch's (a Chakra host trace) and the profile of the same run",
     .example = "spillway import chakra et.json profile.json -o model.trace.zst",
     .inferred = kPyTorch,
     .files = "the execution trace, then the profile",
     .most = 2,
     .read = import_chakra},
    {.name = "memory-snapshot",
     .summary = "A memory snapshot of PyTorch's, with the profile and the execution trace of the same run",
     .example = "spillway import memory-snapshot snapshot.pickle profile.json et.json -o model.trace.zst",
     .inferred =
         "Record all three at once:\n"
         "  torch.cuda.memory._record_memory_history(max_entries=1000000)\n"
         "  ...  # profile and execution trace, as `spillway import kineto --help` says\n"
         "  torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")\n"
         "The snapshot says how many bytes tensors have, when they die, and which line of the script made them. The\n"
         "profile needs no profile_memory=True. The pickle is read as plain data: nothing in it is ever run.",
     .files = "the snapshot, then the profile, then the execution trace",
     .most = 3,
     .read = import_memory_snapshot},
    {.name = "triosim",
     .summary = "A pair of tables of TrioSim",
     .example = "spillway import triosim resnet50/trace.csv resnet50/tensor.csv -o resnet50.trace.zst",
     .inferred = "What an operator is not given, it makes; one whose name ends in _ changes its results in place.",
     .files = "trace.csv, then tensor.csv",
     .fewest = 2,
     .most = 2,
     .read = import_triosim},
};

Result<int> import_file(const Kind& kind, const ImportOptions& options) {
  TRY_VOID(check_replaced(options.output, OutputKind::trace, "-o"));
  TRY(const Trace trace, kind.read(options.files));
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
    command->add_option("FILE", options->files, kind.files)->required()->expected(kind.fewest, kind.most);
    command->add_option("-o,--output", options->output, "the trace to write; compressed if it ends in .zst")
        ->required();
    command->callback([options, &kind, &status] { status = finish(import_file(kind, *options)); });
  }
  import->footer(examples);
}

}  // namespace spillway
