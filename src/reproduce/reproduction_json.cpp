#include "reproduce/reproduction_json.h"

#include <nlohmann/json.hpp>

#include "report/json.h"
#include "reproduce/claim_text.h"
#include "reproduce/commands.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json input_of(const std::string& model, const std::string& path, const LoadedTrace& loaded) {
  Json input{{"model", model}, {"trace", path}, {"hash", loaded.hash}};
  if (!loaded.trace.estimated.empty()) input["estimated_times"] = true;
  return input;
}

Json inputs_of(std::span<const Experiment> experiments, const TracesAtHand& at_hand) {
  Json inputs = Json::array();
  for (const auto& [model, loaded] : at_hand.traces) {
    const auto uses = [&](const Experiment& one) {
      const std::vector<std::string> models = models_of(one);
      return std::ranges::find(models, model) != models.end();
    };
    if (experiments.empty() || std::ranges::any_of(experiments, uses))
      inputs.push_back(input_of(model, at_hand.paths.at(model), loaded));
  }
  return inputs;
}

std::string_view name_of(Relation relation) {
  switch (relation) {
    case Relation::near:
      return "near";
    case Relation::at_least:
      return "at_least";
    case Relation::at_most:
      return "at_most";
    case Relation::within:
      return "within";
    case Relation::fails:
      return "fails";
  }
  return "";
}

Json json_of(const JudgedStatement& statement) {
  const bool has_bound = statement.relation != Relation::fails;
  return {{"what", statement.what},
          {"models", statement.models},
          {"ours", number_or_null(statement.ours)},
          {"unit", statement.unit},
          {"relation", name_of(statement.relation)},
          {"bound", has_bound ? Json(statement.bound) : Json(nullptr)},
          {"upper", statement.relation == Relation::within ? Json(statement.upper) : Json(nullptr)},
          {"tolerance", statement.tolerance},
          {"rule", rule_text(statement)},
          {"holds", statement.holds}};
}

Json json_of(const JudgedReason& reason, const Reproduction& reproduction, const std::string& figure) {
  Json values = Json::array();
  for (const JudgedReason::Value& value : reason.values)
    values.push_back({{"model", value.model},
                      {"published", number_or_null(value.published)},
                      {"ours", number_or_null(value.before)},
                      {"ours_so", number_or_null(value.after)}});
  return {{"text", reason.spec.text},
          {"policy", reason.spec.policy},
          {"at", reason.spec.at.empty() ? Json(nullptr) : Json(reason.spec.at)},
          {"explained_share", number_or_null(reason.explained)},
          {"values", std::move(values)},
          {"command", command_for(reason.experiments, reproduction.at_hand, reproduction.paper, figure)}};
}

Json json_of(const JudgedClaim& claim, const Reproduction& reproduction) {
  const auto figure = std::ranges::find_if(reproduction.figures,
                                           [&](const FigureResult& one) { return one.spec.id == claim.spec.figure; });
  const bool is_judged = claim.verdict != Verdict::not_judged;
  const std::string unit = figure == reproduction.figures.end() ? "" : figure->spec.unit;
  Json json{{"id", claim.spec.id},
            {"paper", reproduction.paper.name},
            {"figure", claim.spec.figure},
            {"claim", claim.spec.claim},
            {"published", published_text(claim)},
            {"ours", is_judged ? Json(ours_text(claim)) : Json(nullptr)},
            {"verdict", to_text(claim.verdict)},
            {"reason", reason_text(claim, unit)},
            {"command", is_judged ? Json(commands_for(claim.experiments, reproduction.at_hand, reproduction.paper,
                                                      claim.spec.figure))
                                  : Json(nullptr)},
            {"machine", claim.experiments.empty() ? Json(nullptr) : Json(machines_text(claim.experiments))},
            {"inputs", is_judged ? inputs_of(claim.experiments, reproduction.at_hand) : Json::array()},
            {"statements", Json::array()},
            {"reasons", Json::array()}};
  for (const JudgedStatement& one : claim.statements) json["statements"].push_back(json_of(one));
  for (const JudgedReason& one : claim.reasons)
    json["reasons"].push_back(json_of(one, reproduction, claim.spec.figure));
  return json;
}

Json json_of(const FigureResult& figure) {
  Json json{{"figure", figure.spec.id}, {"title", figure.spec.title},
            {"unit", figure.spec.unit}, {"x", figure.spec.x_title.empty() ? Json(nullptr) : Json(figure.spec.x_title)},
            {"note", figure.spec.note}, {"estimated_models", figure.estimated},
            {"series", Json::array()}};
  for (const SeriesResult& series : figure.series) {
    const std::string simulated = series.spec.points.empty() ? "" : series.spec.points.front().experiment.policy;
    Json one{{"model", series.spec.model},
             {"design", series.spec.policy.empty() ? Json(nullptr) : Json(series.spec.policy)},
             {"policy", simulated.empty() ? Json(nullptr) : Json(simulated)},
             {"part", series.spec.part.empty() ? Json(nullptr) : Json(series.spec.part)},
             {"points", Json::array()}};
    for (const PointResult& point : series.points)
      one["points"].push_back(
          {{"x", figure.spec.x_title.empty() || point.label.empty() ? Json(nullptr) : Json(point.x)},
           {"ours", number_or_null(point.ours)},
           {"published", number_or_null(point.published)},
           {"infeasible", point.infeasible}});
    for (const CurvePoint& point : series.curve)
      one["points"].push_back({{"x", point.x}, {"ours", point.y}, {"published", nullptr}, {"infeasible", false}});
    json["series"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::string to_json(const Reproduction& reproduction) {
  Json report = new_report();
  report["paper"] = reproduction.paper.name;
  report["title"] = reproduction.paper.title;
  report["published_source"] = reproduction.paper.source;
  report["traces"] = inputs_of({}, reproduction.at_hand);
  report["absent_models"] = reproduction.at_hand.absent;
  report["notes"] = reproduction.at_hand.notes;
  report["simulated"] = reproduction.count.simulated;
  report["from_cache"] = reproduction.count.from_cache;
  report["claims"] = Json::array();
  for (std::size_t at = 0; at < reproduction.claims.size(); ++at) {
    Json claim = json_of(reproduction.claims[at], reproduction);
    if (!reproduction.variations.empty()) {
      claim["flips"] = !flips_of(reproduction, at).empty();
      claim["sensitivity"] = Json::array();
      for (const Variation& one : reproduction.variations)
        claim["sensitivity"].push_back({{"assumption", one.assumption}, {"verdict", to_text(one.verdicts[at])}});
    }
    report["claims"].push_back(std::move(claim));
  }
  report["figures"] = Json::array();
  for (const FigureResult& figure : reproduction.figures) report["figures"].push_back(json_of(figure));
  return to_text(report);
}

}  // namespace spillway
