#include "reproduce/figures.h"

#include <gtest/gtest.h>

#include "trace/random_trace.h"

namespace spillway {
namespace {

SeriesSpec times_of(const std::string& policy, std::optional<double> published) {
  return {.model = "m",
          .policy = policy,
          .measure = &iteration_seconds,
          .points = {{.experiment = {.model = "m", .policy = policy}, .published = published}}};
}

FigureSpec two_policies() {
  return {.id = "1", .title = "time", .unit = "×", .series = {times_of("slow", 30), times_of("fast", 10)}};
}

FigureResult filled(const FigureSpec& figure, double fast_seconds = 2, const std::string& estimated = "") {
  Outcomes outcomes;
  for (const auto& [policy, time] : {std::pair("slow", 8.0), {"fast", fast_seconds}})
    outcomes[{.model = "m", .policy = policy}] = {.feasible = time > 0, .iteration_seconds = time, .moved = {}};
  Trace trace = random_trace(1);
  trace.estimated = estimated;
  FactsByModel facts;
  facts.emplace("m", trace);
  return fill_in(figure, outcomes, facts);
}

TEST(FillIn, SpeedupsAreTheOthersTimeByTheOwn) {
  FigureSpec figure = two_policies();
  figure.speedup_over = "slow";
  const FigureResult result = filled(figure);
  const PointResult *slow = result.find("m", "slow", "", ""), *fast = result.find("m", "fast", "", "");
  ASSERT_TRUE(slow && fast);
  EXPECT_EQ(slow->ours, 1);
  EXPECT_EQ(fast->ours, 4);
  EXPECT_EQ(fast->published, 3);
}

TEST(FillIn, PercentAreTheOwnValueByTheOthers) {
  FigureSpec figure = two_policies();
  figure.percent_of = "slow";
  EXPECT_EQ(filled(figure).series[0].points[0].ours, 100);
  EXPECT_EQ(filled(figure).series[1].points[0].ours, 25);
}

TEST(FillIn, NothingOfSomethingIsZeroPercentAndOfNothingNone) {
  FigureSpec figure = two_policies();
  figure.percent_of = "slow";
  EXPECT_EQ(compared(figure, 0, 5), 0);
  EXPECT_EQ(compared(figure, 5, 0), std::nullopt);
}

TEST(FillIn, WithoutTheOthersValueThereIsNone) {
  FigureSpec figure = two_policies();
  figure.speedup_over = "fast";
  figure.series[1].points[0].published = std::nullopt;
  const FigureResult result = filled(figure, 0);
  EXPECT_EQ(result.series[0].points[0].ours, std::nullopt);
  EXPECT_EQ(result.series[0].points[0].published, std::nullopt);
  EXPECT_FALSE(result.series[0].points[0].infeasible);
  EXPECT_TRUE(result.series[1].points[0].infeasible);
}

TEST(FillIn, LeavesOutWhatWasNotSimulated) {
  FigureSpec figure = two_policies();
  figure.series[0].points.push_back({.label = "other", .experiment = {.model = "absent", .policy = "slow"}});
  figure.series[1].points[0].experiment.beside = {{"absent"}};
  const FigureResult result = filled(figure);
  ASSERT_EQ(result.series.size(), 1u) << "of the second series nothing is left";
  EXPECT_EQ(result.series[0].points.size(), 1u);
  EXPECT_EQ(result.series[0].spec.points.size(), 1u);
}

TEST(EstimatesText, SaysSoWhereTimesWereNotMeasured) {
  EXPECT_EQ(estimates_text(filled(two_policies())), "");
  FigureResult figure = filled(two_policies(), 2, "roofline, a100");
  EXPECT_EQ(estimates_text(figure), "Times are estimates.");
  FigureSpec of_bytes = two_policies();
  of_bytes.is_of_times = false;
  EXPECT_EQ(estimates_text(filled(of_bytes, 2, "roofline, a100")), "") << "it has none";
  figure.measured = {"another"};
  EXPECT_EQ(estimates_text(figure), "Times are estimates of m.");
  figure.estimated = {"m", "n"};
  EXPECT_EQ(estimates_text(figure), "Times are estimates, except of another.");
}

}  // namespace
}  // namespace spillway
