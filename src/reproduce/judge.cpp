#include "reproduce/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "reproduce/numbers.h"

namespace spillway {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Values {
  std::optional<double> ours, published;
  bool undecided = false;  // what it is divided by is infeasible: no number, and no fault of the numerator's
};

std::optional<double> quotient(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return std::nullopt;
  if (*b == 0) return *a == 0 ? 1 : kInfinite;
  return *a / *b;
}

Values values_at(const StatementSpec& statement, const FigureResult& figure, const std::string& model,
                 const std::string& label) {
  const PointResult* point = figure.find(model, statement.policy, statement.part, label);
  if (point == nullptr || (!point->ours && !point->infeasible)) return {.ours = {}, .published = {}, .undecided = true};
  if (statement.over.empty()) return {.ours = point->ours, .published = point->published};
  const std::string& part = statement.over_part.empty() ? statement.part : statement.over_part;
  const PointResult* over = figure.find(model, statement.over, part, label);
  if (over == nullptr || over->infeasible || !over->ours) return {.ours = {}, .published = {}, .undecided = true};
  return {.ours = quotient(point->ours, over->ours), .published = quotient(point->published, over->published)};
}

bool is_worse(Relation relation, std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return !a && b;
  return relation == Relation::at_most ? *a > *b : *a < *b;
}

// Without a point of its own: where it is worst.
std::pair<std::string, Values> worst(const StatementSpec& statement, const FigureResult& figure,
                                     const std::string& model) {
  if (!statement.at.empty()) return {statement.at, values_at(statement, figure, model, statement.at)};
  std::pair<std::string, Values> found{"", {.ours = {}, .published = {}, .undecided = true}};
  for (const std::string& label : figure.labels_of(model)) {
    const Values values = values_at(statement, figure, model, label);
    if (values.undecided) continue;
    if (found.second.undecided || is_worse(statement.relation, values.ours, found.second.ours)) found = {label, values};
  }
  return found;
}

bool is_true(const JudgedStatement& statement) {
  if (statement.relation == Relation::fails) return !statement.ours;
  if (!statement.ours) return false;
  const double slack = statement.tolerance * std::abs(statement.bound);
  switch (statement.relation) {
    case Relation::near:
      return std::abs(*statement.ours - statement.bound) <= slack;
    case Relation::at_least:
      return *statement.ours >= statement.bound - slack;
    case Relation::at_most:
      return *statement.ours <= statement.bound + slack;
    case Relation::within:
      return *statement.ours >= statement.bound && *statement.ours <= statement.upper;
    case Relation::fails:
      break;
  }
  return false;
}

std::optional<JudgedStatement> judged(const StatementSpec& spec, const FigureResult& figure, const std::string& models,
                                      const std::string& label, const Values& values) {
  const auto bound = spec.bound ? spec.bound : values.published;
  if (values.undecided || (!bound && spec.relation != Relation::fails)) return std::nullopt;
  if (spec.relation == Relation::near && *bound == 0) return std::nullopt;  // Nothing is within a share of nothing.
  // A point that the statement does not name is the one where it is worst.
  const std::string_view place = !spec.at.empty() ? "at" : spec.relation == Relation::at_most ? "most at" : "least at";
  JudgedStatement statement{.what = label.empty() ? spec.what : fmt::format("{}, {} {}", spec.what, place, label),
                            .models = models,
                            .unit = spec.over.empty() ? figure.spec.unit : "×",
                            .relation = spec.relation,
                            .ours = values.ours,
                            .bound = bound.value_or(0),
                            .upper = spec.upper,
                            .tolerance = spec.tolerance,
                            .is_bound_published = !spec.bound,
                            .holds = false};
  if (!spec.unit.empty()) statement.unit = spec.unit;
  statement.holds = is_true(statement);
  return statement;
}

// Over points of which both are known, so that ours and theirs are of the same ones.
std::optional<JudgedStatement> judged_largest(const StatementSpec& spec, const FigureResult& figure,
                                              const std::vector<std::string>& models) {
  struct OfModel {
    std::string model;
    Values values;
  };
  std::vector<OfModel> all;
  for (const std::string& model : models)
    for (const std::string& label : spec.at.empty() ? figure.labels_of(model) : std::vector{spec.at})
      if (const Values values = values_at(spec, figure, model, label); !values.undecided && values.ours)
        all.push_back({model, values});
  const auto is_published = [](const OfModel& one) { return one.values.published.has_value(); };
  const std::size_t before = all.size();
  if (std::ranges::any_of(all, is_published)) std::erase_if(all, std::not_fn(is_published));
  if (all.empty()) return std::nullopt;
  Values largest;
  std::set<std::string> counted;
  for (const auto& [model, values] : all) {
    largest.ours = std::max(largest.ours, values.ours);
    largest.published = std::max(largest.published, values.published);
    counted.insert(model);
  }
  const std::string name = fmt::format("largest of {} model{}{}", counted.size(), counted.size() == 1 ? "" : "s",
                                       all.size() < before ? ", where published" : "");
  return judged(spec, figure, name, spec.at, largest);
}

// A mean over models of which both are known, so that ours and theirs are of the same ones. Where nothing is published
// by model, over all.
std::optional<JudgedStatement> judged_together(const StatementSpec& spec, const FigureResult& figure,
                                               const std::vector<std::string>& models) {
  double ours = 0, published = 0;
  std::size_t count = 0;
  const bool is_published = std::ranges::any_of(
      models, [&](const std::string& model) { return worst(spec, figure, model).second.published.has_value(); });
  for (const std::string& model : models) {
    const auto [label, values] = worst(spec, figure, model);
    if (values.undecided || (is_published && !values.published)) continue;
    if (!values.ours)  // Without it the mean would be of those that suit the claim.
      return judged(spec, figure, model, label, values);
    ours += std::log(*values.ours);
    published += std::log(values.published.value_or(1));
    ++count;
  }
  if (count == 0) return std::nullopt;
  const auto finished = [&](double sum) { return std::exp(sum / static_cast<double>(count)); };
  const std::string name = fmt::format("mean of {} model{}", count, count == 1 ? "" : "s");
  return judged(spec, figure, name, spec.at, {.ours = finished(ours), .published = finished(published)});
}

std::vector<std::string> models_of(const std::vector<std::string>& only, const FigureResult& figure) {
  std::vector<std::string> models = figure.models();
  if (!only.empty())
    std::erase_if(models, [&](const auto& name) { return std::ranges::find(only, name) == only.end(); });
  return models;
}

}  // namespace

std::string_view to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::holds_in_part:
      return "holds in part";
    case Verdict::does_not_hold:
      return "does not hold";
    case Verdict::not_judged:
      return "not judged";
  }
  return "";
}

std::string rule_text(const JudgedStatement& statement) {
  const std::string bound = number_text(statement.bound, statement.unit);
  const std::string slack =
      statement.tolerance > 0 ? fmt::format(", less {:.3g} % of it", 100 * statement.tolerance) : "";
  switch (statement.relation) {
    case Relation::near:
      return fmt::format("within {:.3g} % of {}", 100 * statement.tolerance, bound);
    case Relation::at_least:
      return fmt::format("at least {}{}", bound, slack);
    case Relation::at_most:
      return fmt::format("at most {}{}", bound,
                         statement.tolerance > 0 ? fmt::format(" and {:.3g} % of it", 100 * statement.tolerance) : "");
    case Relation::within:
      return fmt::format("from {} to {}", bound, number_text(statement.upper, statement.unit));
    case Relation::fails:
      return "infeasible";
  }
  return "";
}

JudgedClaim judge(const ClaimSpec& claim, const FigureResult& figure) {
  JudgedClaim result{.spec = claim, .verdict = Verdict::not_judged, .statements = {}, .reasons = {}, .experiments = {}};
  for (const StatementSpec& spec : claim.statements) {
    const std::vector<std::string> models = models_of(spec.only, figure);
    if (spec.models != Over::each_model) {
      auto statement = spec.models == Over::most_of_models ? judged_largest(spec, figure, models)
                                                           : judged_together(spec, figure, models);
      if (statement) result.statements.push_back(*std::move(statement));
      continue;
    }
    for (const std::string& model : models) {
      const auto [label, values] = worst(spec, figure, model);
      if (auto statement = judged(spec, figure, model, label, values))
        result.statements.push_back(*std::move(statement));
    }
  }
  for (const SeriesResult& series : figure.series)
    for (const PointSpec& point : series.spec.points) {
      const auto uses = [&](const StatementSpec& spec) {
        return (series.spec.policy == spec.policy || series.spec.policy == spec.over ||
                series.spec.policy == base_of(figure.spec)) &&
               (spec.at.empty() || spec.at == point.label || figure.spec.relative_to == point.label) &&
               (spec.only.empty() || std::ranges::find(spec.only, series.spec.model) != spec.only.end());
      };
      if (std::ranges::any_of(claim.statements, uses) &&
          std::ranges::find(result.experiments, point.experiment) == result.experiments.end())
        result.experiments.push_back(point.experiment);
    }
  if (result.statements.empty()) return result;
  const auto held = std::ranges::count(result.statements, true, &JudgedStatement::holds);
  const auto all = static_cast<std::ptrdiff_t>(result.statements.size());
  result.verdict = held == all ? Verdict::holds : held > 0 ? Verdict::holds_in_part : Verdict::does_not_hold;
  return result;
}

namespace {

// The reason's experiment in place of one of the figure's.
Experiment changed(Experiment experiment, const ReasonSpec& reason) {
  if (!reason.instead.empty()) experiment.policy = reason.instead;
  experiment.overrides.insert(experiment.overrides.end(), reason.overrides.begin(), reason.overrides.end());
  if (reason.estimates_percent != 100) experiment.estimates_percent = reason.estimates_percent;
  if (reason.bytes_percent != 100) experiment.bytes_percent = reason.bytes_percent;
  return experiment;
}

// On the same machine what the figure compares with, if it does so.
std::optional<Experiment> changed_base(const SeriesSpec& series, const ReasonSpec& reason, const FigureSpec& figure) {
  if (base_of(figure).empty()) return std::nullopt;
  for (const SeriesSpec& base : figure.series)
    if (base.model == series.model && base.policy == base_of(figure) && base.part == series.part)
      for (const PointSpec& point : base.points)
        if (point.label == reason.at)
          return changed(point.experiment, {.text = "",
                                            .policy = base.policy,
                                            .instead = reason.base_instead,
                                            .overrides = reason.overrides,
                                            .estimates_percent = reason.estimates_percent,
                                            .bytes_percent = reason.bytes_percent});
  return std::nullopt;
}

// Of measured traces such an experiment would change nothing.
bool is_of_estimates(const ReasonSpec& reason) {
  return reason.estimates_percent != 100 || reason.bytes_percent != 100;
}

bool concerns(const ReasonSpec& reason, const SeriesSpec& series) {
  return series.policy == reason.policy && series.part == reason.part &&
         std::holds_alternative<Measure>(series.measure) &&
         (reason.only.empty() || std::ranges::find(reason.only, series.model) != reason.only.end());
}

}  // namespace

std::vector<Experiment> experiments_of(const ReasonSpec& reason, const FigureSpec& figure, const Traces& traces) {
  std::vector<Experiment> experiments;
  for (const SeriesSpec& series : figure.series)
    if (concerns(reason, series))
      for (const PointSpec& point : series.points) {
        if (point.label != reason.at || !are_at_hand(point.experiment, traces)) continue;
        if (is_of_estimates(reason) && !has_estimates(point.experiment, traces)) continue;
        experiments.push_back(changed(point.experiment, reason));
        if (const auto base = changed_base(series, reason, figure)) experiments.push_back(*base);
      }
  return experiments;
}

JudgedReason judge(const ReasonSpec& reason, const FigureResult& figure, const Outcomes& outcomes) {
  JudgedReason result{.spec = reason, .values = {}, .experiments = {}, .explained = {}};
  double before = 0, after = 0;
  for (const SeriesResult& series : figure.series) {
    if (!concerns(reason, series.spec)) continue;
    for (std::size_t at = 0; at < series.points.size(); ++at) {
      const PointResult& point = series.points[at];
      if (point.label != reason.at) continue;
      const Experiment experiment = changed(series.spec.points[at].experiment, reason);
      if (!outcomes.contains(experiment)) continue;
      const Measure measure = std::get<Measure>(series.spec.measure);
      auto value = measure(outcomes.at(experiment));
      result.experiments.push_back(experiment);
      if (const auto base = changed_base(series.spec, reason, figure.spec)) {
        value = compared(figure.spec, value, measure(outcomes.at(*base)));
        result.experiments.push_back(*base);
      }
      result.values.push_back(
          {.model = series.spec.model, .before = point.ours, .after = value, .published = point.published});
      if (!point.ours || !value || !point.published) continue;
      before += std::abs(*point.ours - *point.published);
      after += std::abs(*value - *point.published);
    }
  }
  if (before > 0) result.explained = 1 - after / before;
  return result;
}

}  // namespace spillway
