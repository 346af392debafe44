#include "cli/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"
#include "base/version.h"
#include "journal/text_of.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

using nlohmann::ordered_json;

std::string_view name_of(Replay::End end) {
  switch (end) {
    case Replay::End::script_ended:
      return "script_ended";
    case Replay::End::failed:
      return "failed";
    case Replay::End::stopped:
      return "stopped";
    case Replay::End::open:
      return "open";
    case Replay::End::difference:
      return "difference";
    case Replay::End::damaged:
      return "damaged";
  }
  return "?";
}

std::string end_in_words(const Replay& replay) {
  switch (replay.end) {
    case Replay::End::script_ended:
      return "the script ended by itself";
    case Replay::End::failed:
      return "the run could not go on: " + replay.why;
    case Replay::End::stopped:
      return "the journal ends here, and the run went on: " + replay.why;
    case Replay::End::open:
      return replay.cut_off ? "the journal breaks off within a record: the process was killed, or its disk is full"
                            : "the journal just ends: the process was killed or ended by a bug, its disk is full, or "
                              "it still runs";
    case Replay::End::difference:
      return "here the decisions differ";
    case Replay::End::damaged:
      return replay.why;
  }
  return "?";
}

std::string place(const ReplayedEvent& moment) {
  return fmt::format("event {} ({}, iteration {})", moment.event, to_text(moment.at), moment.iterations + 1);
}

std::string tiers_in_words(const Replay& replay) {
  std::string words;
  for (const Tier tier : kTiers) {
    if (replay.capacity[tier] == Bytes{}) continue;
    words += fmt::format("{}{} {} of {} (peak {})", words.empty() ? "" : ", ", to_text(tier),
                         to_text(replay.used[tier]), to_text(replay.capacity[tier]), to_text(replay.peak[tier]));
  }
  return words;
}

std::string moved_in_words(const Replay& replay) {
  std::string words;
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to && replay.moved(from, to) > Bytes{})
        words += fmt::format("{}{} to {} {}", words.empty() ? "" : ", ", to_text(from), to_text(to),
                             to_text(replay.moved(from, to)));
  return words.empty() ? "nothing" : words;
}

std::string list(std::string_view title, const std::vector<std::string>& lines) {
  std::string text = fmt::format("{}\n", title);
  for (const std::string& line : lines) text += fmt::format("  {}\n", printable(line));
  return text;
}

std::string list(std::string_view title, const std::vector<ReplayedEvent>& moments) {
  std::vector<std::string> lines;
  for (const ReplayedEvent& moment : moments) lines.push_back(fmt::format("{}: {}", place(moment), moment.what));
  return list(title, lines);
}

// Both lists, with a mark where they part.
std::string commands_in_words(const std::vector<std::string>& commands, std::size_t first) {
  constexpr std::size_t kMostShown = 40;
  std::string text;
  const std::size_t from = first > kMostShown / 2 ? first - kMostShown / 2 : 0;
  if (from > 0) text += fmt::format("    ... {} more that are equal\n", from);
  for (std::size_t at = from; at < std::min(commands.size(), from + kMostShown); ++at)
    text += fmt::format("  {} {}\n", at == first ? ">" : " ", printable(commands[at]));
  if (commands.size() > from + kMostShown)
    text += fmt::format("    ... {} more\n", commands.size() - from - kMostShown);
  if (first >= commands.size()) text += "  > (nothing)\n";
  return text;
}

std::vector<std::string> flights_in_words(const Replay& replay) {
  std::vector<std::string> lines;
  for (const Ledger::Flight& flight : replay.flights)
    lines.push_back(fmt::format("{}, for {}{}", text_of(Command{flight.move}),
                                to_text(excess(replay.time, flight.since)), flight.cancelled ? ", cancelled" : ""));
  return lines;
}

std::string_view equal_in_words(const Replay& replay) {
  if (replay.equal()) return "all equal";
  return replay.difference ? "not all equal" : "all equal up to the damage";
}

ordered_json json_of(const ReplayedEvent& moment) {
  return {{"event", moment.event},
          {"seconds", seconds(moment.at)},
          {"iteration", moment.iterations + 1},
          {"what", moment.what}};
}

ordered_json json_of(const std::vector<ReplayedEvent>& moments) {
  ordered_json list = ordered_json::array();
  for (const ReplayedEvent& moment : moments) list.push_back(json_of(moment));
  return list;
}

}  // namespace

std::string replay_table(const Replay& replay, const std::string& file) {
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"journal", fmt::format("{}, of spillway {}", printable(file), printable(replay.version))});
  table.add_row({"replayed", fmt::format("{} events, {} commands, {} plans: {}", replay.events, replay.commands,
                                         replay.plans, equal_in_words(replay))});
  table.add_row({"time", fmt::format("{}, {} iterations", to_text(replay.time), replay.iterations)});
  table.add_row({"looks ahead", replay.online.empty() ? "no" : printable(replay.online)});
  table.add_row({"end", printable(end_in_words(replay))});
  table.add_row({"memory", tiers_in_words(replay)});
  table.add_row({"moved", moved_in_words(replay)});
  table.add_row({"tensors alive", fmt::format("{}", replay.tensors)});
  table.add_row({"planned, but skipped", fmt::format("{}", replay.skipped_commands)});
  std::string text = table.text();
  text.erase(0, text.find('\n') + 1);  // There are no headers.
  if (!replay.flights.empty()) text += list("moves under way", flights_in_words(replay));
  if (!replay.waiting.empty()) text += list("waiting", replay.waiting);
  if (const auto& difference = replay.difference) {
    if (!difference->before.empty()) text += list("before", difference->before);
    text += fmt::format("{}: {}\n", place(difference->moment), printable(difference->moment.what));
    text += "recorded\n" + commands_in_words(difference->recorded, difference->first);
    text += "replayed\n" + commands_in_words(difference->replayed, difference->first);
  } else if (!replay.last.empty()) {
    text += list("last", replay.last);
    if (!replay.unconfirmed.empty()) text += list("which leads to (not in the journal)", replay.unconfirmed);
  }
  return text;
}

std::string replay_json(const Replay& replay, const std::string& file) {
  ordered_json report = new_report();
  report["journal"] = {{"file", file}, {"version", replay.version}};
  report["equal"] = replay.equal();
  report["end"] = name_of(replay.end);
  report["why"] = replay.why.empty() ? ordered_json() : ordered_json(replay.why);
  report["cut_off"] = replay.cut_off;
  report["events"] = replay.events;
  report["commands"] = replay.commands;
  report["plans"] = replay.plans;
  report["iterations"] = replay.iterations;
  report["run_seconds"] = seconds(replay.time);
  report["looks_ahead"] = replay.online.empty() ? ordered_json() : ordered_json(replay.online);
  report["capacity_bytes"] = json_of(replay.capacity);
  report["used_bytes"] = json_of(replay.used);
  report["peak_bytes"] = json_of(replay.peak);
  report["moved_bytes"] = json_of(replay.moved);
  report["tensors"] = replay.tensors;
  report["skipped_commands"] = replay.skipped_commands;
  report["moves_under_way"] = flights_in_words(replay);
  report["waiting"] = replay.waiting;
  report["last"] = json_of(replay.last);
  report["unconfirmed"] = replay.unconfirmed;
  report["difference"] = ordered_json();
  if (const auto& difference = replay.difference)
    report["difference"] = {{"at", json_of(difference->moment)},
                            {"first_command", difference->first},
                            {"recorded", difference->recorded},
                            {"replayed", difference->replayed},
                            {"before", json_of(difference->before)}};
  return to_text(report);
}

std::string replay_error(const Replay& replay, const std::string& file) {
  if (!replay.difference) return fmt::format("{}: replayed up to event {}, then {}", file, replay.events, replay.why);
  const Difference& difference = *replay.difference;
  const auto command = [&](const std::vector<std::string>& commands) {
    return difference.first < commands.size() ? "'" + commands[difference.first] + "'" : std::string("nothing more");
  };
  const std::string other = replay.version == kVersion ? "both are version " + replay.version +
                                                             ", so the code has changed since or a decision "
                                                             "depends on something that is not journalled"
                                                       : fmt::format("the run was decided by version {}, this is {}",
                                                                     replay.version, kVersion);
  return fmt::format("{}: command {} after {}, '{}', was {} in the run and is {} now; {}", file, difference.first + 1,
                     place(difference.moment), difference.moment.what, command(difference.recorded),
                     command(difference.replayed), other);
}

}  // namespace spillway
