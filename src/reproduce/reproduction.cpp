#include "reproduce/reproduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "reproduce/assumptions.h"
#include "trace/g10.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// All that may be the model's trace: the artifact's, and MODEL.trace or MODEL.trace.zst, also in a folder "scaled".
std::vector<std::string> trace_paths(const PaperModel& model, const std::vector<std::string>& folders) {
  const std::string& id = model.unscaled.empty() ? model.id : model.unscaled;
  std::vector<std::string> names;
  if (model.unscaled.empty()) names.push_back(model.folder);
  for (const std::string& place : {id, "scaled/" + id})
    for (const char* kind : {".trace", ".trace.zst"}) names.push_back(place + kind);
  std::vector<std::string> paths;
  std::error_code none;
  for (const std::string& folder : folders)
    for (const std::string& name : names)
      if (const fs::path path = fs::path(folder) / name; fs::exists(path, none)) paths.push_back(path.string());
  return paths;
}

// Where a trace's times are from. Those before others are taken.
enum class Times : std::uint8_t { measured, stretched, roofline };
Times times_of(const Trace& trace) {
  if (trace.estimated.empty()) return Times::measured;
  return trace.estimated.contains("scaled to") ? Times::stretched : Times::roofline;  // as --scale-ideal writes it
}

// The artifact's is imported. Its hash is that of the file which `spillway import` writes.
Result<LoadedTrace> read_trace(const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return load_trace(path);
  TRY(Trace trace, import_g10(path));
  TRY(const std::string json, to_json(trace));
  return LoadedTrace{.trace = std::move(trace), .hash = trace_hash(json)};
}

// Names it as the command line and users do: "7.7a" is of "7.7", too.
bool is_asked_for(const std::string& id, const std::string& figure) {
  return figure.empty() || id == figure ||
         (id.starts_with(figure) && id.size() == figure.size() + 1 && id.back() >= 'a');
}

// Its figures with all experiments under the assumption. Whether there are any that change.
bool assume(Paper& paper, const Assumption& assumption, const Traces& traces) {
  bool changes = false;
  for (FigureSpec& figure : paper.figures)
    for (SeriesSpec& series : figure.series)
      for (PointSpec& point : series.points) {
        Experiment changed = assumption.changed(point.experiment, traces);
        changes = changes || (are_at_hand(changed, traces) && changed != point.experiment);
        point.experiment = std::move(changed);
      }
  return changes;
}

const FigureResult* figure_of(const ClaimSpec& claim, const std::vector<FigureResult>& figures) {
  const auto found =
      std::ranges::find_if(figures, [&](const FigureResult& one) { return one.spec.id == claim.figure; });
  return found == figures.end() ? nullptr : &*found;
}

// Not judged without its figure.
JudgedClaim judged_in(const ClaimSpec& claim, const std::vector<FigureResult>& figures) {
  const FigureResult* of = figure_of(claim, figures);
  if (of != nullptr) return judge(claim, *of);
  return {.spec = claim, .verdict = Verdict::not_judged, .statements = {}, .reasons = {}, .experiments = {}};
}

// Whose traces the figures need.
std::set<std::string> models_of(const std::vector<FigureSpec>& figures) {
  std::set<std::string> models;
  for (const FigureSpec& figure : figures)
    for (const SeriesSpec& series : figure.series) {
      if (!std::holds_alternative<Measure>(series.measure)) models.insert(series.model);
      for (const PointSpec& point : series.points)
        for (const std::string& model : models_of(point.experiment)) models.insert(model);
    }
  return models;
}

}  // namespace

std::string paper_names() {
  std::vector<std::string_view> names;
  for (const PaperEntry& entry : kPapers) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Paper> paper_by_name(std::string_view name) {
  for (const PaperEntry& entry : kPapers)
    if (entry.name == name) return entry.paper();
  return fail(Errc::usage, fmt::format("no paper '{}' is known; there is {}", name, paper_names()));
}

Result<> select_figure(Paper& paper, const std::string& figure) {
  std::vector<std::string> ids;
  for (const FigureSpec& one : paper.figures) ids.push_back(one.id);
  std::erase_if(paper.figures, [&](const FigureSpec& one) { return !is_asked_for(one.id, figure); });
  std::erase_if(paper.claims, [&](const ClaimSpec& one) { return !is_asked_for(one.figure, figure); });
  if (paper.figures.empty() && paper.claims.empty())
    return fail(Errc::usage, fmt::format("{} has no {}{} here; there are figures and tables (T) {}", paper.name,
                                         figure.starts_with('T') ? "table " : "figure ",
                                         figure.starts_with('T') ? figure.substr(1) : figure, fmt::join(ids, ", ")));
  const std::set<std::string> models = models_of(paper.figures);
  std::erase_if(paper.models, [&](const PaperModel& model) { return !models.contains(model.id); });
  return {};
}

Result<TracesAtHand> read_traces(const Paper& paper, const std::vector<std::string>& folders) {
  TracesAtHand at_hand{.folders = folders, .traces = {}, .paths = {}, .absent = {}};
  for (const PaperModel& model : paper.models) {
    struct Candidate {
      std::string path;
      LoadedTrace loaded;
    };
    std::vector<Candidate> candidates;
    for (const std::string& path : trace_paths(model, folders)) {
      TRY(LoadedTrace loaded, read_trace(path));
      const auto as_model = at_hand.paths.find(model.unscaled);
      const bool is_wanted = model.unscaled.empty() || (times_of(loaded.trace) == Times::roofline &&
                                                        (as_model == at_hand.paths.end() || as_model->second != path));
      if (is_wanted) candidates.push_back({path, std::move(loaded)});
    }
    if (candidates.empty()) {
      if (model.unscaled.empty()) at_hand.absent.push_back(model.id);
      continue;
    }
    Candidate& first =
        *std::ranges::min_element(candidates, {}, [](const auto& one) { return times_of(one.loaded.trace); });
    const std::string& estimated = first.loaded.trace.estimated;
    if (!estimated.empty() && !estimated.starts_with("roofline, " + paper.machine))
      at_hand.notes.push_back(fmt::format("The times of {} are estimates of another machine ({}), and {}'s is {}.",
                                          first.path, estimated, paper.name, paper.machine));
    at_hand.paths.emplace(model.id, std::move(first.path));
    at_hand.traces.emplace(model.id, std::move(first.loaded));
  }
  if (at_hand.traces.empty() && !paper.models.empty()) {
    const PaperModel& first = paper.models.front();
    const bool has_folder = !first.folder.empty() && first.folder != first.id;
    return fail(Errc::bad_input,
                fmt::format("--traces: {} has no trace of {}, such as {}.trace.zst{}; examples/models/traces.py {} -o "
                            "DIR makes them",
                            fmt::join(folders, ", "), paper.name, first.unscaled.empty() ? first.id : first.unscaled,
                            has_folder ? fmt::format(", or {}/kernels.config", first.folder) : "", paper.name));
  }
  return at_hand;
}

std::vector<std::string> flips_of(const Reproduction& reproduction, std::size_t claim) {
  std::vector<std::string> flips;
  for (const Variation& one : reproduction.variations)
    if (one.verdicts[claim] != reproduction.claims[claim].verdict)
      flips.push_back(fmt::format("{} if {}", to_text(one.verdicts[claim]), one.assumption));
  return flips;
}

Result<Reproduction> reproduce(Paper paper, const ReproductionRequest& request, TracesAtHand at_hand,
                               const RunnerOptions& options, const ReproductionProgress& progress) {
  const Traces& traces = at_hand.traces;
  FactsByModel facts;
  for (const auto& [model, loaded] : traces) facts.emplace(model, loaded.trace);
  std::vector<std::pair<std::string, Paper>> assumed;
  for (const Assumption& assumption : request.varies ? assumptions() : std::vector<Assumption>{})
    if (Paper other = paper; assume(other, assumption, traces)) assumed.emplace_back(assumption.text, std::move(other));

  // All of it is one list. Reasons are run with the figures: whether they are shown, the verdicts say.
  std::set<Experiment> experiments;
  const auto add = [&](const std::vector<Experiment>& more) { experiments.insert(more.begin(), more.end()); };
  for (const FigureSpec& one : paper.figures) add(experiments_of(one, traces));
  for (const auto& [text, other] : assumed)
    for (const FigureSpec& one : other.figures) add(experiments_of(one, traces));
  for (const ClaimSpec& claim : paper.claims)
    for (const FigureSpec& one : paper.figures)
      if (request.explains_why && one.id == claim.figure)
        for (const ReasonSpec& reason : claim.reasons) add(experiments_of(reason, one, traces));
  TRY(RunResult run, run_experiments(std::vector(experiments.begin(), experiments.end()), traces, options,
                                     [&](std::size_t done) { progress(done, experiments.size()); }));

  const auto figures_of = [&](const Paper& one) {
    std::vector<FigureResult> figures;
    for (const FigureSpec& figure : one.figures) figures.push_back(fill_in(figure, run.outcomes, facts));
    return figures;
  };
  Reproduction result{
      .paper = {}, .at_hand = {}, .figures = figures_of(paper), .claims = {}, .variations = {}, .count = run.count};
  for (const ClaimSpec& claim : paper.claims) {
    JudgedClaim judged = judged_in(claim, result.figures);
    const FigureResult* of = figure_of(claim, result.figures);
    const bool needs_reason = judged.verdict == Verdict::holds_in_part || judged.verdict == Verdict::does_not_hold;
    if (request.explains_why && needs_reason)
      for (const ReasonSpec& reason : claim.reasons) judged.reasons.push_back(judge(reason, *of, run.outcomes));
    std::erase_if(judged.reasons, [](const JudgedReason& reason) { return reason.values.empty(); });
    result.claims.push_back(std::move(judged));
  }
  for (const auto& [text, other] : assumed) {
    const std::vector<FigureResult> figures = figures_of(other);
    Variation variation{.assumption = text, .verdicts = {}};
    for (const ClaimSpec& claim : paper.claims) variation.verdicts.push_back(judged_in(claim, figures).verdict);
    result.variations.push_back(std::move(variation));
  }
  result.paper = std::move(paper);
  result.at_hand = std::move(at_hand);
  return result;
}

}  // namespace spillway
