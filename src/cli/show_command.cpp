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
#include "cli/shown_file.h"
#include "cli/shown_timeline.h"
#include "pages/page.h"
#include "report/show.h"
#include "report/show_timeline.h"
#include "timeline/timeline_file.h"
#include "trace/format.h"

namespace spillway {
namespace {

struct ShowOptions {
  std::string file;
  TimelineChoice choice;
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

Result<> check(const ShowOptions& options, ShownFile::Kind kind) {
  const TimelineChoice& choice = options.choice;
  const bool draws = options.pictures.are_asked_for();
  if (draws && options.json) return fail(Errc::usage, "--json prints, --html and --perfetto draw; leave one out");
  if (!choice.trace.empty() && kind != ShownFile::Kind::plan && (!draws || kind != ShownFile::Kind::journal))
    return fail(Errc::usage, fmt::format("--trace: {} has no trace of its own; plans have, and journals that are drawn",
                                         options.file));
  if (!choice.iterations.empty() && (!draws || kind != ShownFile::Kind::journal))
    return fail(
        Errc::usage,
        fmt::format("--iterations: {} has no iterations to choose from; journals that are drawn have", options.file));
  return options.pictures.check();
}

Result<int> draw_report(const ShownFile& file, const Pictures& pictures) {
  if (!pictures.perfetto.empty())
    return fail(Errc::usage,
                fmt::format("--perfetto: {} is the report of a run, which has no moments; `spillway run --record DIR` "
                            "keeps them, and DIR/run.journal can be drawn",
                            file.path));
  TRY(const std::string page, report_page_of(file.content, file.path));
  TRY(const std::string said, write_picture(pictures.html, page, "a browser"));
  return print(said);
}

Result<int> show(const ShowOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(options.file, error)) return std::unexpected(which_of(options.file));
  TRY(const ShownFile file, open_shown(options.file));
  TRY_VOID(check(options, file.kind));
  if (options.pictures.are_asked_for()) {
    if (file.kind == ShownFile::Kind::run_report) return draw_report(file, options.pictures);
    TRY(const RunTimeline timeline, timeline_of(file, options.choice));
    TRY(const std::string said, options.pictures.draw(timeline));
    return print(said);
  }
  switch (file.kind) {
    case ShownFile::Kind::journal:
      return replay_journal(file.path, kEventsBefore, options.json);
    case ShownFile::Kind::plan: {
      TRY(const PlanWithTrace shown, load_plan_with_trace(file.path, options.choice.trace));
      return print(show_plan(shown, options.json));
    }
    case ShownFile::Kind::timeline: {
      TRY(const RunTimeline timeline, parse_timeline(file.content, file.path));
      return print(options.json ? timeline_json(timeline) : timeline_table(timeline));
    }
    case ShownFile::Kind::trace: {
      TRY(const LoadedTrace loaded, parse_trace(file.content, file.path));
      return print(options.json ? show_json(loaded) : show_table(loaded));
    }
    case ShownFile::Kind::run_report:
      break;
  }
  return fail(Errc::usage,
              fmt::format("{}: `spillway run` has printed what it says; --html OUT draws it", options.file));
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
      "  spillway show g10.timeline                     the same in words: the longest waits, and why\n"
      "  spillway show records/run.journal --html run.html    what a real run did; --perfetto, too\n"
      "  spillway show records/run.journal      where the run stood at its end, as `spillway replay` says it\n"
      "Peak live is what the iteration needs with all memory; the largest working set is the least for policies whose\n"
      "kernels cannot fault (g10-gds, g10-host), others do with less;\n"
      "inactive periods are the times in which a tensor can be somewhere else.");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("FILE", options->file, "a trace, a plan, a timeline, the journal of a run, or its report")
      ->required();
  command
      ->add_option("--trace", options->choice.trace,
                   "that a plan was made for (default: of the same name, beside it), or that has the names for a "
                   "journal (default: model.trace beside it)")
      ->type_name("FILE");
  command->add_option("--html", options->pictures.html, "writes a page that draws it, for a browser")->type_name("OUT");
  command
      ->add_option("--iterations", options->choice.iterations,
                   "of a journal that is drawn: N or FROM-TO, counted from 1 (default: the last of together at most "
                   "20,000 operators)")
      ->type_name("FROM-TO");
  command->add_option("--perfetto", options->pictures.perfetto, "writes the same as trace events, for ui.perfetto.dev")
      ->type_name("OUT");
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback([options, &status] { status = finish(show(*options)); });
}

}  // namespace spillway
