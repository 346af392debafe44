#include "reproduce/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "reproduce/figure_cells.h"

namespace spillway {
namespace {

constexpr std::size_t kMostLines = 4;   // of commands that are worth pasting one by one
constexpr std::size_t kMostModels = 5;  // the same of each of so many

std::string quoted(const std::string& word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./=+:,@%").contains(c);
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string machine_arguments(const Experiment& experiment) {
  std::string text = "--machine " + quoted(experiment.machine);
  for (const std::string& change : experiment.overrides) text += " --set " + quoted(change);
  if (experiment.noise_percent > 0) text += fmt::format(" --noise {}%", experiment.noise_percent);
  return text;
}

// What `compare` and `simulate` have no words for in one line.
bool needs_more(const Experiment& experiment) {
  return experiment.iterations > 0 || experiment.estimates_percent != 100 || experiment.bytes_percent != 100 ||
         !experiment.learned_from.empty() || !experiment.budget_of.empty();
}

bool is_imported(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}

// The file that a line works on.
std::string trace_file(const std::string& model, const TracesAtHand& at_hand) {
  const std::string& path = at_hand.paths.at(model);
  return quoted(is_imported(path) ? model + ".trace" : path);
}

std::string imports(const std::vector<std::string>& models, const TracesAtHand& at_hand) {
  std::string text;
  for (const std::string& model : models)
    if (const std::string& path = at_hand.paths.at(model); is_imported(path))
      text += fmt::format("spillway import g10 {} -o {}\n", quoted(path), trace_file(model, at_hand));
  return text;
}

std::string reproduction(const Paper& paper, const std::string& figure, const TracesAtHand& at_hand) {
  const bool is_table = figure.starts_with('T');
  std::string text = fmt::format("spillway reproduce {} {} {}", paper.name, is_table ? "--table" : "--figure",
                                 is_table ? figure.substr(1) : figure);
  for (const std::string& folder : at_hand.folders) text += " --traces " + quoted(folder);
  return text;
}

}  // namespace

std::string command_for(std::span<const Experiment> experiments, const TracesAtHand& at_hand, const Paper& paper,
                        const std::string& figure) {
  // By machine: the models that run on it, and the policies of them all.
  struct Group {
    std::vector<std::string> models, policies;
  };
  std::vector<std::pair<std::string, Group>> groups;
  std::vector<std::string> models;
  for (const Experiment& experiment : experiments) {
    const std::string machine = machine_arguments(experiment);
    auto group = std::ranges::find(groups, machine, &std::pair<std::string, Group>::first);
    if (group == groups.end()) group = groups.insert(groups.end(), {machine, {}});
    add_once(group->second.models, experiment.model);
    add_once(group->second.policies, experiment.policy);
    add_once(models, experiment.model);
  }
  std::string itself = reproduction(paper, figure, at_hand);
  if (groups.size() > kMostLines || models.size() > kMostModels || std::ranges::any_of(experiments, needs_more))
    return itself;
  if (experiments.empty()) {
    for (const auto& [model, path] : at_hand.paths) models.push_back(model);
    if (models.size() > kMostModels) return itself;
    std::string text = imports(models, at_hand);
    for (const std::string& model : models) text += fmt::format("spillway show {}\n", trace_file(model, at_hand));
    return text.substr(0, text.size() - 1);
  }
  std::string text = imports(models, at_hand);
  for (const auto& [machine, group] : groups)
    for (const std::string& model : group.models) {
      const std::string file = trace_file(model, at_hand);
      text += group.policies.size() == 1
                  ? fmt::format("spillway simulate {} --policy {} {}\n", file, quoted(group.policies.front()), machine)
                  : fmt::format("spillway compare {} --policies {} {}\n", file,
                                quoted(fmt::format("{}", fmt::join(group.policies, ","))), machine);
    }
  return text.substr(0, text.size() - 1);
}

std::string commands_for(std::span<const Experiment> experiments, const TracesAtHand& at_hand, const Paper& paper,
                         const std::string& figure) {
  std::string itself = reproduction(paper, figure, at_hand);
  const std::string lines = command_for(experiments, at_hand, paper, figure);
  return lines == itself ? itself : itself + "\n# The same, one by one:\n" + lines;
}

std::string machines_text(std::span<const Experiment> experiments) {
  std::vector<std::string> texts;
  for (const Experiment& experiment : experiments)
    add_once(texts, experiment.overrides.empty()
                        ? experiment.machine
                        : fmt::format("{} with {}", experiment.machine, fmt::join(experiment.overrides, ", ")));
  if (texts.size() > kMostLines)
    return fmt::format("{} of them, from {} to {}", texts.size(), texts.front(), texts.back());
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace spillway
