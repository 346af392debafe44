#include "reproduce/figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reproduce/figure_cells.h"

namespace spillway {
namespace {

// In percent of the point with that label.
void make_relative(std::vector<PointResult>& points, const std::string& label) {
  const auto base = std::ranges::find(points, label, &PointResult::label);
  if (base == points.end()) return;
  const auto [ours, published] = std::pair(base->ours, base->published);
  for (PointResult& point : points) {
    if (point.ours && ours && *ours > 0) point.ours = 100 * *point.ours / *ours;
    if (point.published && published && *published > 0) point.published = 100 * *point.published / *published;
  }
}

// Each value by that of the other policy, of the same model, part and point. Without that one there is no value.
void compare_with_base(FigureResult& figure) {
  const FigureResult before = figure;
  for (SeriesResult& one : figure.series)
    for (PointResult& point : one.points) {
      const PointResult* base = before.find(one.spec.model, base_of(figure.spec), one.spec.part, point.label);
      const auto against = [&](std::optional<double> value, std::optional<double> other) {
        return compared(figure.spec, value, other);
      };
      point.ours = against(point.ours, base == nullptr ? std::nullopt : base->ours);
      point.published = against(point.published, base == nullptr ? std::nullopt : base->published);
    }
}

// Of a series that simulates: the points whose experiments were run. Of one that looks at a trace: that, if it is
// there.
std::optional<SeriesResult> fill_in(const SeriesSpec& series, const Outcomes& outcomes, const FactsByModel& facts) {
  SeriesResult result{.spec = series, .points = {}, .curve = {}};
  if (const auto* of_outcome = std::get_if<Measure>(&series.measure)) {
    std::erase_if(result.spec.points, [&](const PointSpec& point) { return !outcomes.contains(point.experiment); });
    for (const PointSpec& point : result.spec.points) {
      const Outcome& outcome = outcomes.at(point.experiment);
      result.points.push_back({.x = point.x,
                               .label = point.label,
                               .ours = (*of_outcome)(outcome),
                               .published = point.published,
                               .infeasible = !outcome.feasible});
    }
    return result.points.empty() ? std::nullopt : std::optional(std::move(result));
  }
  const auto found = facts.find(series.model);
  if (found == facts.end()) return std::nullopt;
  if (const auto* curve = std::get_if<TraceCurve>(&series.measure)) result.curve = (*curve)(found->second);
  if (const auto* of_trace = std::get_if<TraceMeasure>(&series.measure))
    result.points.push_back({.x = 0,
                             .label = "",
                             .ours = (*of_trace)(found->second),
                             .published = series.published_seen,
                             .infeasible = false});
  return result;
}

// Those whose traces it has values of.
std::vector<std::string> models_of(const SeriesSpec& series) {
  if (!std::holds_alternative<Measure>(series.measure)) return {series.model};
  std::vector<std::string> models;
  for (const PointSpec& point : series.points)
    for (const std::string& model : models_of(point.experiment)) add_once(models, model);
  return models;
}

}  // namespace

const std::string& base_of(const FigureSpec& figure) {
  return figure.speedup_over.empty() ? figure.percent_of : figure.speedup_over;
}

std::optional<double> compared(const FigureSpec& figure, std::optional<double> value, std::optional<double> base) {
  if (!value || !base) return std::nullopt;
  const bool is_speedup = !figure.speedup_over.empty();
  if ((is_speedup ? *value : *base) <= 0) return std::nullopt;
  return is_speedup ? *base / *value : 100 * *value / *base;
}

const PointResult* FigureResult::find(const std::string& model, const std::string& policy, const std::string& part,
                                      const std::string& label) const {
  for (const SeriesResult& one : series)
    if (one.spec.model == model && one.spec.policy == policy && one.spec.part == part)
      for (const PointResult& point : one.points)
        if (point.label == label) return &point;
  return nullptr;
}

std::vector<std::string> FigureResult::models() const {
  std::vector<std::string> names;
  for (const SeriesResult& one : series) add_once(names, one.spec.model);
  return names;
}

std::vector<std::string> FigureResult::labels_of(const std::string& model) const {
  std::vector<std::string> labels;
  for (const SeriesResult& one : series)
    if (one.spec.model == model)
      for (const PointResult& point : one.points) add_once(labels, point.label);
  return labels;
}

std::string estimates_text(const FigureResult& figure) {
  if (figure.estimated.empty()) return "";
  if (figure.measured.empty()) return "Times are estimates.";
  const bool are_most = figure.estimated.size() > figure.measured.size();
  return fmt::format("Times are estimates{} {}.", are_most ? ", except of" : " of",
                     fmt::join(are_most ? figure.measured : figure.estimated, ", "));
}

std::vector<std::string> notes_of(const FigureResult& figure) {
  if (figure.series.empty()) return {"No trace of its models is at hand."};
  std::vector<std::string> notes;
  for (const std::string& note : {estimates_text(figure), figure.spec.note})
    if (!note.empty()) notes.push_back(note);
  return notes;
}

std::vector<Experiment> experiments_of(const FigureSpec& figure, const Traces& traces) {
  std::vector<Experiment> experiments;
  for (const SeriesSpec& series : figure.series)
    if (std::holds_alternative<Measure>(series.measure))
      for (const PointSpec& point : series.points)
        if (are_at_hand(point.experiment, traces)) experiments.push_back(point.experiment);
  return experiments;
}

FigureResult fill_in(const FigureSpec& figure, const Outcomes& outcomes, const FactsByModel& facts) {
  FigureResult result{.spec = figure, .series = {}};
  for (const SeriesSpec& series : figure.series) {
    std::optional<SeriesResult> filled = fill_in(series, outcomes, facts);
    if (!filled) continue;
    if (figure.is_of_times)
      for (const std::string& model : models_of(filled->spec))
        add_once(facts.at(model).trace.estimated.empty() ? result.measured : result.estimated, model);
    result.series.push_back(*std::move(filled));
    if (!figure.relative_to.empty()) make_relative(result.series.back().points, figure.relative_to);
  }
  if (!base_of(figure).empty()) compare_with_base(result);
  return result;
}

}  // namespace spillway
