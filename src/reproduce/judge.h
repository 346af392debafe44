#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reproduce/figures.h"
#include "reproduce/paper.h"

namespace spillway {

enum class Verdict : std::uint8_t { holds, holds_in_part, does_not_hold, not_judged };
std::string_view to_text(Verdict verdict);  // "holds in part"

// A statement for one model, or for a mean of models: see Note [Verdicts].
struct JudgedStatement {
  std::string what;    // with its place: "G10 / DeepUM+, at 12.8 GB/s"
  std::string models;  // "ViT-1280", or "mean of 3 models"
  std::string unit;    // "×" of quotients
  Relation relation = Relation::near;
  std::optional<double> ours;  // nothing: infeasible
  double bound = 0, upper = 0;
  double tolerance = 0;
  bool is_bound_published = true;  // computed from what was published of the same models; else the claim's own words
  bool holds = false;
};
std::string rule_text(const JudgedStatement& statement);  // "within 10 % of 1.2×"

struct JudgedReason {
  ReasonSpec spec;
  struct Value {
    std::string model;
    std::optional<double> before, after, published;
  };
  std::vector<Value> values;
  std::vector<Experiment> experiments;
  // The share of the distance to what was published that is gone; below zero: it is farther away.
  std::optional<double> explained;
};

struct JudgedClaim {
  ClaimSpec spec;
  Verdict verdict = Verdict::not_judged;
  std::vector<JudgedStatement> statements;
  std::vector<JudgedReason> reasons;  // of what does not hold alone
  std::vector<Experiment> experiments;
};

// All statements that can be judged with what is at hand; the verdict is of them.
JudgedClaim judge(const ClaimSpec& claim, const FigureResult& figure);

// What must be simulated for the reasons, and the reasons with what came out.
std::vector<Experiment> experiments_of(const ReasonSpec& reason, const FigureSpec& figure, const Traces& traces);
JudgedReason judge(const ReasonSpec& reason, const FigureResult& figure, const Outcomes& outcomes);

}  // namespace spillway
