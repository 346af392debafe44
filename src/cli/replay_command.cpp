#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/replay_journal.h"

namespace spillway {
namespace {

struct ReplayCommand {
  std::string journal;
  std::size_t before = kEventsBefore;
  bool json = false;
};

}  // namespace

void add_replay_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("replay", "Run the decisions of a recorded run again, at a desk");
  command->footer(
      "Examples:\n"
      "  spillway run --device-memory 8GiB --record DIR -- python3 train.py\n"
      "  spillway replay DIR\n"
      "  spillway replay DIR/run.journal --before 20 --json\n"
      "The code that decides what moves is told again what it was told in the run, without the script, its data or "
      "its\n"
      "machine. Where it asks for something else than in the run, the replay stops and shows both. When all is equal, "
      "it\n"
      "says what the run's state was at the end: what moved, what waited, what happened last. A journal that breaks "
      "off\n"
      "(a run that was killed) is replayed up to there.\n"
      "Exit status: 0 all is equal, 1 a difference, or a journal that cannot be read to its end.");
  auto options = std::make_shared<ReplayCommand>();
  command->add_option("DIR", options->journal, "what --record was given, or a journal")->required();
  command->add_option("--before", options->before, "show so many events before a difference, or the end (default: 5)")
      ->check(CLI::Range(0, 100'000))
      ->type_name("N");
  command->add_flag("--json", options->json, "one JSON object, for programs");
  command->callback(
      [options, &status] { status = finish(replay_journal(options->journal, options->before, options->json)); });
}

}  // namespace spillway
