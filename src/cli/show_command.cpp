#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "cli/pictures.h"
#include "cli/replay_journal.h"
#include "cli/show_plan.h"
#include "report/show.h"
#include "timeline/timeline_file.h"
#include "trace/format.h"

namespace spillway {
namespace {

struct ShowOptions {
  std::string file;
  std::string trace;
  Pictures pictures;
  bool json = false;
};

// A record holds several things to show.
Error which_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    for (const std::string_view ending : {".trace", ".trace.zst", ".plan", ".journal", ".timeline", ".timeline.zst"})
      if (name.ends_with(ending)) names.push_back(name);
  }
  std::ranges::sort(names);
  return {Errc::usage, fmt::format("{} is a folder; {}", folder,
                                   names.empty() ? "there is nothing in it to show"
                                                 : fmt::format("name a file in it: {}", fmt::join(names, ", ")))};
}

Result<int> show(const ShowOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(options.file, error)) return std::unexpected(which_of(options.file));
  if (!options.trace.empty() && !names_plan(options.file))
    return fail(Errc::usage,
                fmt::format("--trace: {} is no .plan file, and nothing else has a trace of its own", options.file));
  if (options.pictures.are_asked_for()) {
    if (names_plan(options.file) || options.file.ends_with(".journal"))
      return fail(Errc::usage,
                  fmt::format("{}: only a trace or a timeline can be drawn; `spillway simulate TRACE --plan FILE "
                              "--timeline OUT` makes a timeline of a plan",
                              options.file));
    if (options.json) return fail(Errc::usage, "--json prints, --html and --perfetto draw; leave one out");
    TRY(const std::string said, options.pictures.draw(options.file));
    return print(said);
  }
  if (names_timeline(options.file))
    return fail(Errc::usage, fmt::format("{}: say how to show a timeline: --html OUT or --perfetto OUT", options.file));
  if (names_plan(options.file)) {
    TRY(const std::string shown, show_plan(options.file, options.trace, options.json));
    return print(shown);
  }
  if (options.file.ends_with(".journal")) return replay_journal(options.file, kEventsBefore, options.json);
  TRY(const LoadedTrace loaded, load_trace(options.file));
  return print(options.json ? show_json(loaded) : show_table(loaded));
}

}  // namespace

void add_show_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "show", "What one training iteration looks like, a plan for it, or what a run has recorded; drawn, too");
  command->footer(
      "Examples:\n  spillway show model.trace\n  spillway show model.trace.zst --json\n"
      "  spillway show records/blocks.plan      a plan, with the trace that lies beside it\n"
      "  spillway show my.plan --trace model.trace\n"
      "  spillway show model.trace --html model.html    a page to look at in a browser\n"
      "  spillway show g10.timeline --html g10.html     of `spillway simulate --timeline`: with waits and transfers\n"
      "  spillway show records/run.journal      where the run stood at its end, as `spillway replay` says it\n"
      "Peak live is what the iteration needs with all memory; the largest working set is the least for policies whose\n"
      "kernels cannot fault (g10-gds, g10-host), others do with less;\n"
      "inactive periods are the times in which a tensor can be somewhere else.");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("FILE", options->file, "a .trace, .plan, .journal or .timeline file")->required();
  command->add_option("--trace", options->trace, "that a plan was made for (default: of the same name, beside it)")
      ->type_name("FILE");
  command->add_option("--html", options->pictures.html, "writes a page that draws a trace or a timeline, for a browser")
      ->type_name("OUT");
  command->add_option("--perfetto", options->pictures.perfetto, "writes the same as trace events, for ui.perfetto.dev")
      ->type_name("OUT");
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback([options, &status] { status = finish(show(*options)); });
}

}  // namespace spillway
