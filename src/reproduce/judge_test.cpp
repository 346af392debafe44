#include "reproduce/judge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reproduce/claim_text.h"
#include "reproduce/for_tests.h"

namespace spillway {
namespace {

ClaimSpec claim_of(std::vector<StatementSpec> statements) {
  return {
      .id = "p.claim", .figure = "1", .claim = "A is fast.", .published = "fast", .statements = std::move(statements)};
}

StatementSpec faster(Over models = Over::each_model) {
  return {.what = "A / B",
          .policy = "A",
          .over = "B",
          .models = models,
          .relation = Relation::at_least,
          .bound = 1,
          .tolerance = 0};
}

std::string text_of(const JudgedReason& reason, const std::string& unit) {
  JudgedClaim claim;
  claim.reasons = {reason};
  return reason_texts(claim, unit).front();
}

Verdict verdict_of(const StatementSpec& statement, const FigureForTests& figure) {
  return judge(claim_of({statement}), figure.result()).verdict;
}

TEST(Judge, AClaimHoldsIfItDoesForEachModel) {
  FigureForTests figure;
  figure.add("m", "A", 90).add("m", "B", 60).add("n", "A", 80).add("n", "B", 80);
  EXPECT_EQ(verdict_of(faster(), figure), Verdict::holds);
}

TEST(Judge, AClaimHoldsInPartIfOneModelDiffers) {
  FigureForTests figure;
  figure.add("m", "A", 90).add("m", "B", 60).add("n", "A", 79).add("n", "B", 80);
  const JudgedClaim claim = judge(claim_of({faster()}), figure.result());
  EXPECT_EQ(claim.verdict, Verdict::holds_in_part);
  ASSERT_EQ(claim.statements.size(), 2u);
  EXPECT_TRUE(claim.statements[0].holds);
  EXPECT_FALSE(claim.statements[1].holds);
  EXPECT_EQ(claim.statements[1].models, "n");
  EXPECT_DOUBLE_EQ(*claim.statements[0].ours, 1.5);
}

// Ours is the most over all points, and so is the published one: they need not be at the same.
TEST(Judge, TheMostIsOverAllPointsOfAllModels) {
  FigureForTests figure;
  figure.add("m", "A", 40, 40, "small").add("m", "B", 40, 20, "small");
  figure.add("m", "A", 90, 30, "large").add("m", "B", 30, 20, "large");
  figure.add("n", "A", 80, {}, "small").add("n", "B", 10, {}, "small");  // 8, and nothing is published of it
  StatementSpec most = faster(Over::most_of_models);
  most.relation = Relation::near;
  most.bound = std::nullopt;
  const JudgedClaim claim = judge(claim_of({most}), figure.result());
  ASSERT_EQ(claim.statements.size(), 1u);
  EXPECT_DOUBLE_EQ(*claim.statements[0].ours, 3);
  EXPECT_DOUBLE_EQ(claim.statements[0].bound, 2);
  EXPECT_EQ(claim.verdict, Verdict::does_not_hold);
  most.bound = 3;
  EXPECT_EQ(verdict_of(most, figure), Verdict::holds);
}

TEST(Judge, AClaimDoesNotHoldIfNoneDoes) {
  FigureForTests figure;
  figure.add("m", "A", 50).add("m", "B", 60);
  EXPECT_EQ(verdict_of(faster(), figure), Verdict::does_not_hold);
}

TEST(Judge, NearIsWithinTheToleranceOnBothSides) {
  const auto with = [](double ours) {
    FigureForTests figure;
    figure.add("m", "A", ours, 50);
    return verdict_of({.what = "A", .policy = "A", .tolerance = 0.1}, figure);
  };
  EXPECT_EQ(with(45), Verdict::holds);
  EXPECT_EQ(with(55), Verdict::holds);
  EXPECT_EQ(with(44.9), Verdict::does_not_hold);
  EXPECT_EQ(with(55.1), Verdict::does_not_hold);
}

TEST(Judge, MeansAreGeometricAndOfTheSameModelsOnBothSides) {
  FigureForTests figure;
  figure.add("m", "A", 80, 90).add("m", "B", 20, 30).add("n", "A", 50, 60).add("n", "B", 50, 60);
  figure.add("published-fails", "A", 70, std::nullopt).add("published-fails", "B", 10, 20);
  StatementSpec size = faster(Over::mean_of_models);
  size.relation = Relation::near;
  size.tolerance = 0.1;
  size.bound = std::nullopt;
  const JudgedClaim claim = judge(claim_of({size}), figure.result());
  ASSERT_EQ(claim.statements.size(), 1u);
  EXPECT_DOUBLE_EQ(*claim.statements[0].ours, 2);               // of 4 and 1
  EXPECT_DOUBLE_EQ(claim.statements[0].bound, std::sqrt(3.0));  // of 3 and 1
  EXPECT_EQ(claim.statements[0].models, "mean of 2 models");
  EXPECT_EQ(rule_text(claim.statements[0]), "within 10 % of 1.73×");
}

TEST(Judge, WhatIsInfeasibleIsNotFasterAndDecidesNothingAboutOthers) {
  FigureForTests figure;
  figure.add("m", "A", std::nullopt).add("m", "B", 60).add("n", "A", 50).add("n", "B", std::nullopt);
  const JudgedClaim claim = judge(claim_of({faster()}), figure.result());
  ASSERT_EQ(claim.statements.size(), 1u);
  EXPECT_EQ(claim.statements[0].models, "m");
  EXPECT_EQ(claim.verdict, Verdict::does_not_hold);
  EXPECT_EQ(verdict_of({.what = "A", .policy = "A", .relation = Relation::fails, .only = {"m"}}, figure),
            Verdict::holds);
  EXPECT_EQ(verdict_of({.what = "A", .policy = "A", .relation = Relation::fails, .only = {"n"}}, figure),
            Verdict::does_not_hold);
}

TEST(Judge, WithoutAPointOfItsOwnTheWorstOneCounts) {
  FigureForTests figure;
  figure.add("m", "A", 90, {}, "1 GB/s").add("m", "B", 60, {}, "1 GB/s");
  figure.add("m", "A", 90, {}, "2 GB/s").add("m", "B", 95, {}, "2 GB/s");
  const JudgedClaim claim = judge(claim_of({faster()}), figure.result());
  ASSERT_EQ(claim.statements.size(), 1u);
  EXPECT_EQ(claim.statements[0].what, "A / B, least at 2 GB/s");
  EXPECT_EQ(claim.verdict, Verdict::does_not_hold);
}

TEST(Judge, NothingIsJudgedOfModelsThatAreNotAtHand) {
  FigureForTests figure;
  figure.add("m", "A", 90).add("m", "B", 60);
  StatementSpec statement = faster();
  statement.only = {"another"};
  EXPECT_EQ(verdict_of(statement, figure), Verdict::not_judged);
}

TEST(Judge, NothingIsJudgedOfWhatIsFeasibleAndHasNoValue) {
  FigureForTests made;
  made.add("m", "A", std::nullopt).add("n", "A", std::nullopt);
  FigureResult figure = made.result();
  figure.series[0].points[0].infeasible = false;
  const JudgedClaim claim = judge(
      claim_of({{.what = "A", .policy = "A", .relation = Relation::at_most, .bound = 1, .tolerance = 0}}), figure);
  ASSERT_EQ(claim.statements.size(), 1u);
  EXPECT_EQ(claim.statements[0].models, "n");
  EXPECT_FALSE(claim.statements[0].holds);
}

TEST(Judge, AClaimNamesWhatWasSimulatedForIt) {
  FigureForTests figure;
  figure.add("m", "A", 90).add("m", "B", 60).add("m", "C", 60);
  const JudgedClaim claim = judge(claim_of({faster()}), figure.result());
  ASSERT_EQ(claim.experiments.size(), 2u);
  EXPECT_EQ(claim.experiments[0].policy, "A");
  EXPECT_EQ(claim.experiments[1].policy, "B");
}

TEST(JudgeReason, SaysHowMuchOfTheDifferenceIsGone) {
  FigureForTests figure;
  figure.add("m", "A", 60, 40).add("n", "A", 50, 40);
  const ReasonSpec reason{.text = "Another rate", .policy = "A", .overrides = {"ssd.write=1GB/s"}};
  Outcomes outcomes;
  for (const auto& [model, percent] : {std::pair("m", 45.0), {"n", 40.0}})
    outcomes[{.model = model, .policy = "A", .overrides = {"ssd.write=1GB/s"}}] = {
        .feasible = true, .iteration_seconds = 100, .ideal_seconds = percent, .moved = {}};
  const JudgedReason judged = judge(reason, figure.result(), outcomes);
  ASSERT_TRUE(judged.explained);
  EXPECT_NEAR(*judged.explained, 1 - 5.0 / 30.0, 1e-9);
  EXPECT_EQ(text_of(judged, "% of ideal"),
            "Another rate. m: A 45.0 % so, 60.0 % before, 40.0 % published. n: A 40.0 % so, 50.0 % before, 40.0 % "
            "published. That is 83 % of the difference.");
}

TEST(JudgeReason, IsSaidOnceOfSeveralPolicies) {
  JudgedClaim claim;
  for (const char* policy : {"A", "B"})
    claim.reasons.push_back({.spec = {.text = "Why", .policy = policy},
                             .values = {{.model = "m", .before = 1, .after = 2, .published = 3}},
                             .experiments = {},
                             .explained = {}});
  EXPECT_EQ(reason_texts(claim, "%"),
            std::vector<std::string>{"Why. m: A 2.00 % so, 1.00 % before, 3.00 % published. m: B 2.00 % so, "
                                     "1.00 % before, 3.00 % published."});
}

TEST(JudgeReason, SaysSoIfItExplainsNothing) {
  FigureForTests figure;
  figure.add("m", "A", 60, 50);
  Outcomes outcomes;
  outcomes[{.model = "m", .policy = "A2"}] = {
      .feasible = true, .iteration_seconds = 100, .ideal_seconds = 70, .moved = {}};
  const JudgedReason judged =
      judge(ReasonSpec{.text = "Why", .policy = "A", .instead = "A2"}, figure.result(), outcomes);
  EXPECT_TRUE(text_of(judged, "%").ends_with("That explains nothing of the difference.")) << text_of(judged, "%");
}

TEST(JudgeReason, ChangesNoMeasuredTrace) {
  FigureForTests figure;
  figure.add("m", "A", 60, 50);
  const ReasonSpec larger{.text = "Larger", .policy = "A", .bytes_percent = 200};
  Traces traces;
  traces.emplace("m", LoadedTrace{});
  EXPECT_TRUE(experiments_of(larger, figure.result().spec, traces).empty());
  EXPECT_TRUE(judge(larger, figure.result(), {}).values.empty()) << "nor does it speak of one";
  traces.at("m").trace.estimated = "roofline, a100";
  EXPECT_EQ(experiments_of(larger, figure.result().spec, traces),
            (std::vector<Experiment>{{.model = "m", .policy = "A", .bytes_percent = 200}}));
}

// Such a figure's reasons change both systems' machine, and may change the other system.
TEST(JudgeReason, ComparesWithTheSameSystemAsTheFigure) {
  FigureForTests made;
  made.add("m", "A", 4, 3).add("m", "B", 1, 1);
  FigureResult figure = made.result();
  figure.spec.speedup_over = "B";
  for (SeriesSpec& one : figure.spec.series) one.measure = &iteration_seconds;
  for (SeriesResult& one : figure.series) one.spec.measure = &iteration_seconds;
  const ReasonSpec reason{
      .text = "Less memory", .policy = "A", .base_instead = "B2", .overrides = {"device.memory=1GiB"}};
  const Experiment own{.model = "m", .policy = "A", .overrides = reason.overrides},
      base{.model = "m", .policy = "B2", .overrides = reason.overrides};
  Traces traces;
  traces.emplace("m", LoadedTrace{});
  EXPECT_EQ(experiments_of(reason, figure.spec, traces), (std::vector<Experiment>{own, base}));
  Outcomes outcomes;
  outcomes[own] = {.feasible = true, .iteration_seconds = 2, .moved = {}};
  outcomes[base] = {.feasible = true, .iteration_seconds = 7, .moved = {}};
  const JudgedReason judged = judge(reason, figure, outcomes);
  ASSERT_EQ(judged.values.size(), 1u);
  EXPECT_EQ(judged.values[0].after, 3.5);
  EXPECT_EQ(judged.explained, 0.5);
}

TEST(ClaimText, NamesEachValueOnce) {
  FigureForTests figure;
  figure.add("m", "A", 90, 80).add("m", "B", 60, 40);
  StatementSpec size = faster();
  size.relation = Relation::near;
  size.bound = std::nullopt;
  const JudgedClaim claim = judge(claim_of({faster(), size}), figure.result());
  EXPECT_EQ(ours_text(claim), "A / B: 1.50× (m)");
  EXPECT_EQ(published_text(claim), "fast; of those at hand, A / B: 2.00× (m)");
  EXPECT_EQ(reason_text(claim, "%"), "Not found.");
}

}  // namespace
}  // namespace spillway
