#include "reproduce/reproduction.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reproduce/assumptions.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

constexpr std::size_t kDearerFaults = 1;  // the place of "a page fault costs twice as much"

TracesAtHand one_trace() {
  Trace trace = random_trace(3);
  const std::string hash = trace_hash(*to_json(trace));
  TracesAtHand at_hand{.folders = {"traces"}, .traces = {}, .paths = {{"m", "traces/m.trace"}}, .absent = {}};
  at_hand.traces.emplace("m", LoadedTrace{.trace = std::move(trace), .hash = hash});
  return at_hand;
}

// That demand paging reaches so much of ideal, which depends on what a fault costs.
Paper one_claim(double least) {
  FigureSpec figure{.id = "1", .title = "throughput", .unit = "% of ideal", .series = {}};
  figure.series.push_back(
      {.model = "m",
       .policy = "UVM",
       .measure = &percent_of_ideal,
       .points = {
           {.experiment = {.model = "m", .policy = "uvm", .overrides = {"device.memory=64MiB"}}, .published = 50}}});
  return {.name = "p",
          .title = "A paper",
          .source = "",
          .models = {{.id = "m", .folder = "m"}},
          .figures = {figure},
          .claims = {
              {.id = "p.fast",
               .figure = "1",
               .claim = "UVM is fast.",
               .published = "so much",
               .statements = {
                   {.what = "UVM", .policy = "UVM", .relation = Relation::at_least, .bound = least, .tolerance = 0}}}}};
}

Reproduction reproduced(double least) {
  auto result = reproduce(one_claim(least), {.explains_why = false, .varies = true}, one_trace(),
                          {.cache_folder = "", .program = ""}, [](std::size_t, std::size_t) {});
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

double percent_of(const Reproduction& result) { return result.figures[0].series[0].points[0].ours.value(); }

TEST(Sensitivity, MarksWhatAnotherAssumptionChanges) {
  const double percent = percent_of(reproduced(0));
  ASSERT_LT(percent, 100) << "it faults";
  const Reproduction close = reproduced(percent - 0.01), far = reproduced(0);
  EXPECT_EQ(close.claims[0].verdict, Verdict::holds);
  EXPECT_EQ(flips_of(close, 0), std::vector<std::string>{"does not hold if " + assumptions()[kDearerFaults].text});
  EXPECT_TRUE(flips_of(far, 0).empty());
}

TEST(Sensitivity, LeavesOutWhatPlaysNoPart) {
  const Reproduction result = reproduced(0);
  EXPECT_TRUE(std::ranges::none_of(result.variations, [](const Variation& one) {
    return one.assumption.contains("estimated") || one.assumption.contains("spare");
  })) << "times were measured, and the machine has no flash";
  EXPECT_FALSE(result.variations.empty());
}

TEST(Sensitivity, NothingIsVariedUnlessAskedFor) {
  const auto result = reproduce(one_claim(0), {.explains_why = false}, one_trace(), {.cache_folder = "", .program = ""},
                                [](std::size_t, std::size_t) {});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->variations.empty());
  EXPECT_EQ(result->count.simulated, 1u);
}

// What the experiment says itself counts more than what is assumed.
TEST(Assumptions, ComeBeforeTheExperimentsOwn) {
  const Experiment experiment{.model = "m", .policy = "uvm", .overrides = {"fault.cost=0us"}};
  const Experiment changed = assumptions()[kDearerFaults].changed(experiment, {});
  ASSERT_EQ(changed.overrides.size(), 2u);
  EXPECT_EQ(changed.overrides.back(), "fault.cost=0us");
}

}  // namespace
}  // namespace spillway
