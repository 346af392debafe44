#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reproduce/paper.h"
#include "reproduce/runner.h"

namespace spillway {

// The policy that the figure compares with; empty: its values are what is measured.
const std::string& base_of(const FigureSpec& figure);
// A value of such a figure, of what is measured; nothing where one of both is missing, or the divisor is zero.
std::optional<double> compared(const FigureSpec& figure, std::optional<double> value, std::optional<double> base);

struct PointResult {
  double x = 0;
  std::string label;
  std::optional<double> ours, published;
  bool infeasible = false;  // it was simulated, and the memory does not suffice
};

// A series as the specification has it, with what came out.
struct SeriesResult {
  SeriesSpec spec;
  std::vector<PointResult> points;  // of a curve: none
  std::vector<CurvePoint> curve;
};

struct FigureResult {
  FigureSpec spec;
  std::vector<SeriesResult> series;         // of models at hand
  std::vector<std::string> estimated = {};  // models whose kernels' times are estimates
  std::vector<std::string> measured = {};   // the others

  // Nothing where the figure has no such point. `label` is empty where points have none.
  const PointResult* find(const std::string& model, const std::string& policy, const std::string& part,
                          const std::string& label) const;
  std::vector<std::string> models() const;                             // in the order of the series
  std::vector<std::string> labels_of(const std::string& model) const;  // of all points, each once
};

using FactsByModel = std::map<std::string, TraceFacts>;

// "Times are estimates.", or of which models they are, or are not; empty where all were measured.
std::string estimates_text(const FigureResult& figure);
// The sentences that stand below it.
std::vector<std::string> notes_of(const FigureResult& figure);

// What must be simulated for the figure, of the models at hand.
std::vector<Experiment> experiments_of(const FigureSpec& figure, const Traces& traces);

// The figure with its values. Every experiment must have its outcome.
FigureResult fill_in(const FigureSpec& figure, const Outcomes& outcomes, const FactsByModel& facts);

}  // namespace spillway
