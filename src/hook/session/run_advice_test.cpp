#include <gtest/gtest.h>

#include "hook/session/run_report.h"

namespace spillway {
namespace {

RunReport::Prediction budget(double part, std::uint64_t milliseconds) {
  return {.part = part,
          .device = Bytes{static_cast<std::uint64_t>(part * 1024) << 20},
          .iteration = Nanos{milliseconds * 1'000'000},
          .policy = "g10"};
}

// A run that had to move something, with 1 GiB; its kernels take 2 s.
struct RunAdvice : testing::Test {
  RunReport report;
  void SetUp() override {
    report.made_tensors = true;
    report.device_budget = 1_GiB;
    report.peak.device = 1_GiB;
    report.managed = Nanos{10'000'000'000};
    report.stall = Nanos{2'500'000'000};
    report.moved(Tier::device, Tier::ssd) = 300_MiB;
    report.outlook =
        RunReport::Outlook{.budgets = {budget(1, 3'000), budget(1.25, 2'500), budget(1.5, 2'080), budget(2, 2'000)},
                           .kernels = Nanos{2'000'000'000},
                           .ssd_in = 500_MiB,
                           .ssd_out = 300_MiB,
                           .ssd_time = Nanos{1'900'000'000},
                           .largest_kernel = {},
                           .largest_bytes = {}};
  }
  RunReport::Advice advice() { return advice_of(report).value_or(RunReport::Advice{}); }
};

TEST_F(RunAdvice, WhatFitsNeedsNoSpillway) {
  report.moved = {};
  report.peak.device = 700_MiB;
  EXPECT_EQ(advice().kind, "fits");
  EXPECT_EQ(advice().sentence, "it fits: Spillway is not needed, since tensors took at most 700 MiB of 1 GiB");
}

TEST_F(RunAdvice, WhatMayHaveEndedForLackOfRoomIsToldHowToGetMore) {
  report.refused = 7_MiB;
  EXPECT_EQ(advice().kind, "memory") << "the script has coped";
  report.exit_status = 1;
  EXPECT_EQ(advice().kind, "room");
  EXPECT_EQ(
      advice().sentence,
      "a tensor of 7 MiB found no room in 1 GiB of device memory, 0 B of host memory and what the SSD could take; "
      "if that ended the script, raise --device-memory or --host-memory, or give it an SSD with more space "
      "(--ssd, --ssd-capacity)");
  report.error = "the SSD has not answered";
  EXPECT_FALSE(advice_of(report)) << "the error says what to do";
}

TEST_F(RunAdvice, NamesTheLeastMemoryThatDoesAboutAsWellAsTheMost) {
  EXPECT_EQ(advice().kind, "memory");
  EXPECT_EQ(
      advice().sentence,
      "more memory would help: by the times of the whole run a planned iteration is predicted to take 2.080 s with "
      "1.5 GiB (1.5 times as much), and 3.000 s with what this run had");
}

TEST_F(RunAdvice, NamesNoMemoryThatGainsLessThanWouldBeWorthIt) {
  report.outlook->budgets = {budget(1, 2'130), budget(1.25, 2'090), budget(1.5, 2'020), budget(2, 2'000)};
  EXPECT_NE(advice().sentence.find("2.020 s with 1.5 GiB"), std::string::npos) << advice().sentence;
}

TEST_F(RunAdvice, SaysWhenMoreMemoryWouldHardlyHelp) {
  report.outlook->budgets = {budget(1, 2'090), budget(1.25, 2'070), budget(1.5, 2'060), budget(2, 2'000)};
  EXPECT_EQ(advice().kind, "enough");
  EXPECT_EQ(
      advice().sentence,
      "more memory would hardly help: by the times of the whole run a planned iteration is predicted to take 2.000 s "
      "with 2 GiB (2 times as much), and 2.090 s with what this run had");
}

RunReport::Iteration iteration_of(std::uint64_t milliseconds, std::uint64_t waited) {
  RunReport::Iteration iteration;
  iteration.duration = Nanos{1'000'000} * milliseconds;
  iteration.waited = Nanos{1'000'000} * waited;
  return iteration;
}

TEST_F(RunAdvice, DoesNotSayThatMemoryWouldHardlyHelpWhereItWaitsForWhatNobodyPredicted) {
  report.outlook->budgets = {budget(1, 2'090), budget(2, 2'000)};
  report.not_planned = kPagingIsAsGood;
  const RunReport::Iteration usual = iteration_of(2'090, 90);
  const RunReport::Iteration other = iteration_of(2'600, 600);  // Every second one makes a copy of its weights, say.
  for (int times = 0; times < 4; ++times) report.iterations.insert(report.iterations.end(), {usual, other});
  EXPECT_EQ(advice().kind, "waits");
  EXPECT_EQ(advice().sentence,
            "some thread waited for memory in 2.500 of 10.000 s; what more of it would change cannot be said: the "
            "last 4 iterations took 2.345 s each on average, and waited for memory in 0.345 s of it, where 0.090 s "
            "were predicted of what repeats itself");
  report.not_planned = "the script ended before one was made";
  EXPECT_EQ(advice().kind, "enough") << "a plan would have waited less";
  report.not_planned = kPagingIsAsGood;
  report.iterations.assign(8, usual);
  report.iterations[3] = iteration_of(90'000, 90'000);
  EXPECT_EQ(advice().kind, "enough") << "as predicted, once it has settled";
  report.iterations[4] = iteration_of(90'000, 90'000);
  EXPECT_EQ(advice().kind, "waits");
  report.iterations.assign(4, other);
  EXPECT_EQ(advice().kind, "enough") << "two show little";
  report.iterations.assign(10, other);
  report.recorded_steps = 2;
  EXPECT_EQ(advice().kind, "enough") << "of two steps there are two";
  report.iterations.assign(20, other);
  EXPECT_NE(advice().sentence.find("the last 5 iterations of 2 optimizer steps took 5.200 s"), std::string::npos)
      << advice().sentence;
}

TEST_F(RunAdvice, LooksForWaitsThatNobodyPredictedSinceAPlanIsFollowedOrNoneIs) {
  report.outlook->budgets = {budget(1, 2'090), budget(2, 2'000)};
  const RunReport::Iteration usual = iteration_of(2'090, 90), waits = iteration_of(90'000, 90'000);
  const auto kind_if_waited_in_the_first = [&](std::size_t count) {
    report.iterations.assign(20, usual);
    for (std::size_t i = 0; i < count; ++i) report.iterations[i] = waits;
    return advice().kind;
  };
  RunReport::PlanTaken plan;
  plan.adopted_at_iteration = 14;
  report.plans = {plan};
  EXPECT_EQ(kind_if_waited_in_the_first(14), "enough") << "nor does its first one count";
  EXPECT_EQ(kind_if_waited_in_the_first(15), "waits");
  plan.adopted_at_iteration = 19;
  report.plans.push_back(plan);
  EXPECT_EQ(kind_if_waited_in_the_first(14), "enough");
  EXPECT_EQ(kind_if_waited_in_the_first(15), "waits") << "another plan changes little";
  report.plans.back().given_up_at_iteration = 16;
  report.plans.back().adopted_at_iteration = 15;
  EXPECT_EQ(kind_if_waited_in_the_first(16), "enough");
  EXPECT_EQ(kind_if_waited_in_the_first(17), "waits");
  plan.adopted_at_iteration = 17;
  report.plans.push_back(plan);
  EXPECT_EQ(kind_if_waited_in_the_first(17), "enough") << "taken up again";
  EXPECT_EQ(kind_if_waited_in_the_first(18), "waits");
}

TEST_F(RunAdvice, APlanForAnotherIterationTellsNothingOfWhatThatWaits) {
  report.outlook->budgets = {budget(1, 2'090), budget(2, 2'000)};
  report.plans.resize(2);
  report.plans[0].adopted_at_iteration = 3;
  report.plans[1].adopted_at_iteration = 14;
  report.iterations.assign(20, iteration_of(2'090, 90));
  for (std::size_t i = 0; i < 14; ++i) report.iterations[i] = iteration_of(90'000, 90'000);
  EXPECT_EQ(advice().kind, "waits");
  report.plans[1].iteration = report.recorded_iteration = 2;
  EXPECT_EQ(advice().kind, "enough") << "it has settled since";
  report.plans[1].optimizer_steps = 2;
  report.iterations[14] = report.iterations[13];
  EXPECT_EQ(advice().kind, "enough") << "the first iteration has two steps";
  report.recorded_iteration = 3;
  report.iterations.assign(20, iteration_of(90'000, 90'000));
  EXPECT_EQ(advice().kind, "enough") << "a plan for that was not ready";
  report.needs_no_plan = 2;
  EXPECT_EQ(advice().kind, "enough") << "the one before needed none";
  report.needs_no_plan = 3;
  EXPECT_EQ(advice().kind, "waits") << "it was decided that it needs none";
}

TEST_F(RunAdvice, WhatThePlanThatIsFollowedWaitsWasPredicted) {
  report.outlook->budgets = {budget(1, 2'090), budget(2, 2'000)};
  report.iterations.assign(20, iteration_of(3'000, 1'000));
  report.plans.emplace_back().adopted_at_iteration = 4;
  EXPECT_EQ(advice().kind, "waits");
  report.plans.back().predicted = Nanos{9'000'000'000};
  EXPECT_EQ(advice().kind, "waits") << "kernels were expected to take as long as that";
  report.plans.back().predicted_wait = Nanos{1'000'000'000};
  EXPECT_EQ(advice().kind, "enough");
  report.plans.back().given_up_at_iteration = 5;
  EXPECT_EQ(advice().kind, "waits");
}

TEST_F(RunAdvice, TheSsdIsTheLimitWhereItTakesLongerThanTheKernels) {
  report.outlook->ssd_time = Nanos{2'000'000'001};
  EXPECT_EQ(advice().kind, "ssd");
  EXPECT_EQ(
      advice().sentence,
      "the SSD is the limit: in each iteration 500 MiB must come back from it and 300 MiB go to it, which takes "
      "at least 2.000 s at the rates measured here, and the kernels take 2.000 s; a faster one (--ssd) would help, "
      "and more memory would help: by the times of the whole run a planned iteration is predicted to take 2.080 s "
      "with 1.5 GiB (1.5 times as much), and 3.000 s with what this run had");
}

TEST_F(RunAdvice, GivesNoneByPredictionsThatPlannedIterationsHaveRefuted) {
  const auto planned = [](Bytes in) {
    RunReport::Iteration iteration;
    iteration.in = in;
    iteration.out = 300_MiB;
    iteration.planned = true;
    return iteration;
  };
  RunReport::PlanTaken& plan = report.plans.emplace_back();
  plan.predicted_in = 500_MiB;
  plan.predicted_out = 300_MiB;
  report.iterations.assign(3, planned(900_MiB));
  EXPECT_EQ(advice().kind, "memory");
  report.iterations.assign(3, planned(1_GiB));
  EXPECT_EQ(advice().kind, "waits");
  EXPECT_EQ(advice().sentence,
            "some thread waited for memory in 2.500 of 10.000 s; what more of it would change cannot be said: planned "
            "iterations moved 1.293 GiB where 800 MiB were predicted");
  report.iterations.pop_back();
  EXPECT_EQ(advice().kind, "memory") << "too few to tell";

  report.iterations.assign(3, planned(1_GiB));
  for (RunReport::Iteration& iteration : report.iterations) iteration.kernels = 10, iteration.planned_kernels = 6;
  EXPECT_EQ(advice().kind, "memory") << "the others' moves are no plan's";
  EXPECT_NE(advice().sentence.find(", without the 4 of 10 operators that are no part of it,"), std::string::npos);

  report.iterations.assign(40, planned(1_GiB));
  plan.adopted_at_iteration = 40;
  report.iterations.insert(report.iterations.end(), 3, planned(500_MiB));
  EXPECT_EQ(advice().kind, "memory") << "what an earlier plan moved says nothing of the last one";

  report.iterations.assign(42, planned(1_GiB));
  EXPECT_EQ(advice().kind, "memory") << "its first iteration does not count";
  report.iterations.push_back(planned(1_GiB));
  EXPECT_EQ(advice().kind, "waits");
}

TEST_F(RunAdvice, DoesNotTrustPredictionsOfIterationsThatWaitMuchLonger) {
  const auto lasts = [](std::uint64_t milliseconds, std::uint64_t waited) {
    RunReport::Iteration iteration;
    iteration.duration = Nanos{1'000'000} * milliseconds;
    iteration.waited = Nanos{1'000'000} * waited;
    iteration.planned = true;
    return iteration;
  };
  report.plans.emplace_back().predicted = Nanos{2'000'000'000};
  report.plans.back().predicted_in = 500_MiB;
  report.iterations.assign(3, lasts(2'900, 2'900));
  EXPECT_EQ(advice().kind, "memory");
  report.iterations.assign(3, lasts(4'000, 900));
  EXPECT_EQ(advice().kind, "memory") << "something else took the time";
  report.iterations.assign(3, lasts(4'000, 1'100));
  const std::string sentence =
      "some thread waited for memory in 2.500 of 10.000 s; what more of it would change cannot be said: planned "
      "iterations took 4.000 s where 2.000 s were predicted, and waited for memory in 1.100 s of it";
  EXPECT_EQ(advice().sentence, sentence);
  report.outlook->largest_kernel = "aten::mm";
  report.outlook->largest_bytes = 800_MiB;
  EXPECT_EQ(advice().sentence, sentence) << "it has room";
  report.outlook->largest_bytes = 1'000_MiB;
  EXPECT_EQ(advice().sentence, sentence +
                                   "; aten::mm uses 1000 MiB at a time, and goes through what has no room in 1 GiB "
                                   "by page faults");
}

TEST_F(RunAdvice, SaysHowLongTookWhatIsPredictedIfThatIsSomethingElse) {
  const auto lasts = [&](std::uint64_t milliseconds) {
    RunReport::Iteration iteration;
    iteration.duration = Nanos{1'000'000} * milliseconds;
    iteration.planned = true;
    report.iterations.assign(6, iteration);
    return advice().sentence;
  };
  EXPECT_TRUE(
      lasts(4'000).ends_with("a planned iteration is predicted to take 2.080 s with 1.5 GiB (1.5 times as much), "
                             "and 3.000 s with what this run had"))
      << "it has followed no plan: " << advice().sentence;
  report.not_planned = kPagingIsAsGood;
  EXPECT_TRUE(lasts(4'000).contains(" an iteration is predicted to take 2.080 s")) << advice().sentence;
  EXPECT_TRUE(lasts(4'000).ends_with(", and 3.000 s with what this run had, where it took 4.000 s"));
  EXPECT_TRUE(lasts(2'500).ends_with(", where it took 2.500 s"));
  EXPECT_TRUE(lasts(3'300).ends_with(", and 3.000 s with what this run had"));
  report.plans.emplace_back().predicted = Nanos{3'000'000'000};
  report.recorded_iteration = report.plans.back().iteration = 7;
  EXPECT_TRUE(lasts(4'000).contains(" a planned iteration is predicted to take 2.080 s")) << advice().sentence;
  EXPECT_TRUE(lasts(4'000).ends_with(", where it took 4.000 s"));
  report.recorded_iteration = 8;
  EXPECT_TRUE(lasts(4'000).ends_with("with what this run had")) << "the plan was for another one";
}

TEST_F(RunAdvice, SaysWhyNothingCouldBeSimulated) {
  report.outlook->budgets.front().iteration.reset();
  report.plans.emplace_back();
  EXPECT_TRUE(advice().sentence.contains("cannot be said: no iteration can be simulated in what this run had; raise "))
      << advice().sentence;
  report.plans.clear();
  report.not_planned = "planning failed: it had too little";
  EXPECT_TRUE(advice().sentence.ends_with("cannot be said, for the same reason as there is no plan"))
      << advice().sentence;
  report.not_planned = "the script ended before one was made";
  EXPECT_TRUE(advice().sentence.contains("no iteration can be simulated")) << advice().sentence;
}

TEST_F(RunAdvice, PromisesNoPlanToAScriptThatNoneCanBeMadeFor) {
  report.not_planned = kNoOptimizer;
  report.has_optimizer = false;
  RunReport::Iteration iteration;
  iteration.duration = Nanos{4'000'000'000};
  report.iterations.assign(6, iteration);
  EXPECT_TRUE(advice().sentence.contains(" an iteration is predicted to take 2.080 s")) << advice().sentence;
  EXPECT_TRUE(advice().sentence.ends_with(", and 3.000 s with what this run had, where it took 4.000 s"));
}

TEST_F(RunAdvice, DoesNotTrustThatPagingIsAsGoodWhereItWaitsMuchLonger) {
  RunReport::Iteration slow;
  slow.duration = Nanos{5'000'000'000};
  slow.waited = Nanos{2'000'000'000};
  report.iterations.assign(6, slow);
  EXPECT_EQ(advice().kind, "memory") << "a plan might have been better";
  report.not_planned = kPagingIsAsGood;
  EXPECT_EQ(
      advice().sentence,
      "some thread waited for memory in 2.500 of 10.000 s; what more of it would change cannot be said: iterations "
      "took 5.000 s where 3.000 s were predicted, and waited for memory in 2.000 s of it");
  report.iterations.pop_back();
  report.iterations.pop_back();
  EXPECT_EQ(advice().kind, "memory") << "two show little";
  slow.duration = Nanos{4'000'000'000};
  report.iterations.assign(6, slow);
  EXPECT_EQ(advice().kind, "memory");
  RunReport::Iteration evaluates;
  evaluates.duration = evaluates.waited = Nanos{20'000'000'000};
  evaluates.kernels = 100;
  report.iterations.insert(report.iterations.end(), 6, slow);
  for (int times = 0; times < 12; ++times) report.iterations.push_back(times % 2 == 0 ? evaluates : slow);
  EXPECT_EQ(advice().kind, "memory") << "no prediction knows of that";
}

TEST_F(RunAdvice, ComparesPagingWithAsManyStepsAsWerePredicted) {
  const auto step = [](std::uint64_t seconds, std::uint64_t kernels) {
    RunReport::Iteration iteration;
    iteration.duration = iteration.waited = Nanos{seconds * 1'000'000'000};
    iteration.kernels = kernels;
    return iteration;
  };
  report.not_planned = kPagingIsAsGood;
  for (const std::uint64_t steps : {1u, 2u}) {
    report.recorded_steps = steps;
    report.iterations.assign(30, step(3, 10));
    EXPECT_EQ(advice().kind, steps == 1 ? "memory" : "waits") << "3 s are predicted for " << steps;
    report.iterations[25] = step(1, 2);
    EXPECT_EQ(advice().kind, steps == 1 ? "memory" : "waits") << "an odd short one shows nothing";
  }
}

TEST_F(RunAdvice, ComparesAPlanForSeveralStepsWithAsMany) {
  const auto step = [](Bytes in, bool planned) {
    RunReport::Iteration iteration;
    iteration.in = in;
    iteration.planned = planned;
    return iteration;
  };
  RunReport::PlanTaken& plan = report.plans.emplace_back();
  plan.predicted_in = 600_MiB;
  plan.optimizer_steps = 2;
  for (int turn = 0; turn < 3; ++turn) {
    report.iterations.push_back(step(100_MiB, true));
    report.iterations.push_back(step(700_MiB, true));
  }
  EXPECT_EQ(advice().kind, "memory") << "800 MiB in two steps are not half as much again as 600";
  for (RunReport::Iteration& iteration : report.iterations) iteration.in += 100_MiB;
  EXPECT_NE(advice().sentence.find("planned iterations of 2 optimizer steps moved 1000 MiB"), std::string::npos)
      << advice().sentence;
  report.iterations.insert(report.iterations.begin() + 3, step(700_MiB, false));
  EXPECT_EQ(advice().kind, "memory") << "steps with one of another kind between them are none on end";

  report.iterations.assign(6, step(700_MiB, true));
  for (RunReport::Iteration& iteration : report.iterations) iteration.steps = 2;
  EXPECT_EQ(advice().kind, "memory") << "steps of two optimizers in turns are one iteration already";
  report.iterations.assign(6, step(1_GiB, true));
  EXPECT_EQ(advice().kind, "waits");
}

TEST_F(RunAdvice, AsksThePlanBeforeWhereTheLastOneHasHardlyBeenFollowed) {
  RunReport::Iteration iteration;
  iteration.in = 700_MiB;
  iteration.planned = true;
  report.iterations.assign(20, iteration);
  for (const std::uint64_t adopted : {5u, 19u}) {
    RunReport::PlanTaken& plan = report.plans.emplace_back();
    plan.predicted_in = adopted == 5 ? 400_MiB : 600_MiB;
    plan.optimizer_steps = 1;
    plan.adopted_at_iteration = adopted;
  }
  EXPECT_EQ(advice().kind, "waits") << advice().sentence;
  report.plans.back().adopted_at_iteration = 10;
  EXPECT_EQ(advice().kind, "memory") << "what the last one moves is as predicted";
}

TEST_F(RunAdvice, SaysOfHowManyStepsAnIterationIs) {
  EXPECT_EQ(advice().sentence.find("steps"), std::string::npos);
  report.recorded_steps = 4;
  EXPECT_NE(advice().sentence.find("a planned iteration of 4 optimizer steps is predicted"), std::string::npos);
}

TEST_F(RunAdvice, WithoutAPredictionItSaysHowLongTheRunWaited) {
  report.outlook->budgets.back().iteration.reset();
  EXPECT_EQ(advice().kind, "waits");
  EXPECT_EQ(advice().sentence,
            "some thread waited for memory in 2.500 of 10.000 s; what more of it would change cannot be said: no "
            "iteration can be simulated in what this run had; raise --device-memory (or --ssd-capacity)");
  report.outlook.reset();
  report.no_outlook = "no iteration repeated itself";
  EXPECT_EQ(advice().sentence,
            "some thread waited for memory in 2.500 of 10.000 s; what more of it would change cannot be said: no "
            "iteration repeated itself");
  report.not_planned = report.no_outlook;
  EXPECT_EQ(advice().sentence,
            "some thread waited for memory in 2.500 of 10.000 s; what more of it would change cannot be said, for the "
            "same reason as there is no plan");
}

TEST_F(RunAdvice, WhereThereWasNothingToManageThereIsNone) {
  report.made_tensors = false;
  EXPECT_FALSE(advice_of(report));
}

}  // namespace
}  // namespace spillway
