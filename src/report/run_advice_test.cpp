#include <gtest/gtest.h>

#include "report/run_report.h"

namespace spillway {
namespace {

IterationFigures iteration_of(std::uint64_t milliseconds, std::uint64_t waited, bool planned) {
  IterationFigures iteration;
  iteration.duration = Nanos{1'000'000} * milliseconds;
  iteration.waited = Nanos{1'000'000} * waited;
  iteration.planned = planned;
  return iteration;
}

// A run of 10 s that had to move something, with 1 GiB: two iterations by demand paging, then six that follow a plan.
struct RunAdvice : testing::Test {
  RunReport report;
  void SetUp() override {
    report.made_tensors = true;
    report.policy = "auto";
    report.learns = true;
    report.device_budget = report.memory.peak.device = 1_GiB;
    report.managed = Nanos{10'000'000'000};
    report.memory.stall = Nanos{2'500'000'000};
    report.memory.moved(Tier::device, Tier::ssd) = 300_MiB;
    report.iterations.assign(2, iteration_of(1'500, 500, false));
    report.iterations.resize(8, iteration_of(1'100, 250, true));
    report.iterations[0].in = 300_MiB;
    PlanFigures& plan = report.plans.emplace_back();
    plan.adopted_at_iteration = 3;
    plan.least_wait = Nanos{200'000'000};
  }
  std::string says() {
    const auto advice = advice_of(report);
    return advice ? (advice->kind == RunReport::Advice::Kind::fits ? "fits: " : "waits: ") + advice->sentence : "";
  }
};

TEST_F(RunAdvice, WhatFitsNeedsNoSpillway) {
  report.memory.moved = {};
  report.memory.peak.device = 700_MiB;
  EXPECT_EQ(says(), "fits: it fits: Spillway is not needed, since tensors took at most 700 MiB of 1 GiB");
  report.unmanaged_count = 1;
  EXPECT_EQ(says(), "") << "others did the work";
  report.unmanaged_count = 0;
  report.exit_status = 1;
  EXPECT_EQ(says(), "") << "it may have ended before it needed more";
}

TEST_F(RunAdvice, AnErrorSaysMore) {
  report.error = "the SSD has not answered";
  EXPECT_EQ(says(), "");
}

TEST_F(RunAdvice, WhereThePlannedIterationsWaitMostItSaysHowFarThatCanBeHelped) {
  EXPECT_EQ(says(),
            "waits: some thread waited for memory in 2.500 of 10.000 s, because iterations that follow the plan wait "
            "0.250 of 1.100 s each (median), where the links let those that it was made for wait 0.200 s at least");
  report.plans.back().optimizer_steps = 2;
  EXPECT_TRUE(says().contains("let those of 2 optimizer steps that it was made for wait")) << says();
}

TEST_F(RunAdvice, WhereTheOthersWaitMostItSaysWhyTheyFollowNoPlan) {
  report.iterations.resize(4);
  EXPECT_TRUE(says().ends_with("in 2.500 of 10.000 s, because 2 of 4 iterations followed no plan")) << says();
  report.iterations.resize(2);
  EXPECT_TRUE(says().ends_with("because the script ended before an iteration had followed the plan")) << says();
  report.plans.clear();
  report.no_plan = {NoPlan::no_iteration, "no iteration has repeated itself"};
  EXPECT_TRUE(says().ends_with("because there was no plan: no iteration has repeated itself")) << says();
  report.no_plan.reset();
  report.policy = "uvm";
  EXPECT_TRUE(says().ends_with("because uvm plans nothing, --policy auto does")) << says();
  report.iterations.clear();
  EXPECT_TRUE(says().ends_with("because uvm plans nothing, --policy auto does")) << says();
}

TEST_F(RunAdvice, HardlyAnyWaitNeedsNoReason) {
  report.memory.stall = Nanos{99'000'000};
  EXPECT_EQ(says(), "waits: some thread waited for memory in 0.099 of 10.000 s");
}

}  // namespace
}  // namespace spillway
