#include "session/read_report.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "session/hook_side.h"

namespace spillway {
namespace {

struct ReadReport : testing::Test {
  Result<SharedSession> session = SharedSession::create();
  Supervised ended;
  void SetUp() override {
    ASSERT_TRUE(session);
    state().owner_pid = 42;
    state().owner_since_ns = 8'000'000'000;
    ended.ended = Nanos{10'000'000'000};
    use("uvm");
  }
  SessionState& state() { return (*session)->state; }
  SessionConfig& config() { return (*session)->config; }
  void use(std::string_view policy) { ASSERT_TRUE(set_text(config().policy, policy, "--policy")); }
  void move_something() {
    MemoryFigures memory;
    memory.moved(Tier::device, Tier::ssd) = 1_MiB;
    state().memory.store(memory);
  }
  RunReport report() { return read_report(**session, ended); }
};

TEST_F(ReadReport, HasWhatTheHookHasLeft) {
  ended.exit_status = 139;
  ended.wall = Nanos{3'000'000'000};
  ended.left_behind = "sleep";
  config().device_budget_bytes = (1_GiB).value;
  state().eviction_path = EvictionMethod::move;
  state().refused_bytes = 5;
  state().unmanaged_peak_bytes = 6;
  state().memory.store({.faults = 7, .written = 11_MiB, .peak = {.device = 100_MiB}});
  state().iterations.add({.duration = Nanos{2}, .faults = 4});
  state().iterations.add({.duration = Nanos{1}, .faults = 3});
  state().unmanaged_count = 1;
  state().unmanaged[0].pid = 5;
  state().unmanaged[0].name.set("python3 worker.py");
  add_notice(**session, "torch.compile is in use");
  const RunReport report = this->report();
  EXPECT_EQ(report.exit_status, 139);
  EXPECT_EQ(report.wall, ended.wall);
  EXPECT_EQ(report.managed, Nanos{2'000'000'000});
  EXPECT_EQ(report.left_behind, "sleep");
  EXPECT_TRUE(report.made_tensors);
  EXPECT_EQ(report.policy, "uvm");
  EXPECT_EQ(report.eviction_path, EvictionMethod::move);
  EXPECT_EQ(report.device_budget, 1_GiB);
  EXPECT_EQ(report.refused, Bytes{5});
  EXPECT_EQ(report.unmanaged_peak, Bytes{6});
  EXPECT_EQ(report.memory.faults, 7u);
  EXPECT_EQ(report.memory.written, 11_MiB);
  EXPECT_EQ(report.memory.peak.device, 100_MiB);
  ASSERT_EQ(report.iterations.size(), 2u);
  EXPECT_EQ(report.iteration_count, 2u);
  EXPECT_EQ(report.iterations[0].faults, 4u);
  EXPECT_EQ(report.iterations[1].duration, Nanos{1});
  ASSERT_EQ(report.unmanaged.size(), 1u);
  EXPECT_EQ(report.unmanaged[0].name, "python3 worker.py");
  EXPECT_EQ(report.notices, std::vector<std::string>{"torch.compile is in use"});
}

TEST_F(ReadReport, ARateIsKnownOnceItHasBeenMeasured) {
  EXPECT_FALSE(report().ssd_read_rate);
  state().ssd_read_rate = 14;
  EXPECT_EQ(report().ssd_read_rate, BytesPerSecond{14});
  EXPECT_FALSE(report().ssd_write_rate);
}

TEST_F(ReadReport, WhetherTheRunLearnsIsItsPolicys) {
  EXPECT_FALSE(report().learns);
  for (const std::string_view policy : {"auto", "deepum"}) {
    use(policy);
    EXPECT_TRUE(report().learns) << policy;
  }
  use("");
  EXPECT_FALSE(report().learns) << "only a trace is wanted";
}

TEST_F(ReadReport, KnowsAlsoWhereNothingMovedThatNothingCanBePlannedFor) {
  EXPECT_TRUE(report().has_optimizer);
  state().no_plan.store({NoPlan::no_optimizer, {}});
  EXPECT_FALSE(report().has_optimizer);
  EXPECT_FALSE(report().no_plan);
}

TEST_F(ReadReport, AsksWhyThereIsNoPlanWhereOneWasWanted) {
  use("auto");
  EXPECT_FALSE(report().no_plan) << "Nothing had to move.";
  move_something();
  ASSERT_TRUE(report().no_plan);
  EXPECT_EQ(report().no_plan->reason, NoPlan::not_measured);
  config().rates.to_device = {1};
  EXPECT_EQ(report().no_plan->reason, NoPlan::ended);
  state().no_plan.store({NoPlan::failed, "no memory"});
  EXPECT_EQ(report().no_plan->reason, NoPlan::failed);
  EXPECT_EQ(report().no_plan->detail.view(), "no memory");
  use("uvm");
  EXPECT_FALSE(report().no_plan);
  use("auto");
  add_plan(**session, {.policy = "g10"});
  state().iterations.add({.planned = 1});
  EXPECT_FALSE(report().no_plan);
}

TEST_F(ReadReport, APlanThatNoIterationHasFollowedIsNotTold) {
  state().iterations.add({});
  add_plan(**session, {.policy = "g10"});
  EXPECT_TRUE(report().plans.empty());
  state().iterations.add({});
  add_plan(**session, {.policy = "g10-clean"});
  ASSERT_EQ(report().plans.size(), 1u);
  EXPECT_EQ(report().plans.back().policy.view(), "g10");
  EXPECT_EQ(report().plan_count, 1u);
}

TEST_F(ReadReport, APlanEndsWithTheIterationBefore) {
  end_plan(**session, PlanEnd::slower);
  EXPECT_TRUE(report().plans.empty());
  add_plan(**session, {});
  for (int i = 0; i < 3; ++i) state().iterations.add({});
  end_plan(**session, PlanEnd::slower);
  ASSERT_EQ(report().plans.size(), 1u);
  EXPECT_EQ(report().plans[0].adopted_at_iteration, 1u);
  EXPECT_EQ(report().plans[0].dropped_at_iteration, 4u);
  EXPECT_EQ(report().plans[0].end, PlanEnd::slower);
}

TEST_F(ReadReport, NamesAnOperatorThatDoesNotFitOnlyWhileItRuns) {
  OversizedOperator running{.used = 96_MiB};
  running.name = "aten::sort";
  state().oversized.store(running);
  ASSERT_EQ(report().notices.size(), 1u);
  EXPECT_EQ(report().notices[0].find("aten::sort was running when the script ended: it used at least 96 MiB"), 0u);
  state().oversized.store({});
  EXPECT_TRUE(report().notices.empty());
}

TEST_F(ReadReport, OfVeryManyPlansTheLastIsTold) {
  for (std::uint64_t plan = 0; plan <= 2 * kMaxPlans; ++plan) {
    add_plan(**session, {.policy = plan % 2 == 0 ? "g10-clean" : "g10", .predicted_in = {plan}});
    state().iterations.add({});
  }
  end_plan(**session, PlanEnd::not_needed);
  const RunReport report = this->report();
  EXPECT_EQ(report.plan_count, 2 * kMaxPlans + 1);
  const PlanFigures& last = report.plans.back();
  EXPECT_EQ(last.policy.view(), "g10-clean");
  EXPECT_EQ(last.predicted_in, Bytes{2 * kMaxPlans});
  EXPECT_EQ(last.adopted_at_iteration, 2 * kMaxPlans + 1);
  EXPECT_EQ(last.end, PlanEnd::not_needed);
}

TEST_F(ReadReport, KnowsTheFilesThatAPlanWasReadFromAndWrittenTo) {
  ASSERT_TRUE(set_text(config().plan_path, "/here/my.plan", "--plan"));
  ASSERT_TRUE(set_text(config().blocks_path, "/there/blocks", "--record"));
  EXPECT_EQ(report().given_plan, "/here/my.plan");
  add_plan(**session, {});
  state().iterations.add({});
  EXPECT_EQ(report().recorded_plan, "");
  state().plan_recorded = 1;
  EXPECT_EQ(report().recorded_plan, "/there/blocks.plan");
}

TEST_F(ReadReport, HasTheTensorsThatMovedMostAsTheyWereToldLast) {
  EXPECT_TRUE(report().costs.empty());
  state().costs.store({{{.name = "weight1", .moved = Bytes{2}}, {.name = "weight2", .moved = Bytes{1}}}});
  EXPECT_EQ(report().costs.size(), 2u);
  state().costs.store({{{.name = "activation17", .maker = "aten::mm", .moved = 1_GiB}}});
  ASSERT_EQ(report().costs.size(), 1u);
  EXPECT_EQ(report().costs[0].name.view(), "activation17");
  EXPECT_EQ(report().costs[0].maker.view(), "aten::mm");
}

TEST_F(ReadReport, SaysWhyThereIsNoTraceThatWasAskedFor) {
  EXPECT_EQ(report().not_recorded, "");
  ASSERT_TRUE(set_text(config().record_path, "/there/model.trace", "--record"));
  state().iterations.add({});
  ended.exit_status = 1;
  EXPECT_TRUE(report().not_recorded.starts_with("the script ended with status 1 after 1 iteration, before its trace"))
      << report().not_recorded;
  state().owner_pid = 0;
  EXPECT_EQ(report().not_recorded, "the script made no tensors with PyTorch");
  state().not_recorded.set("no two iterations were equal");
  EXPECT_EQ(report().not_recorded, "no two iterations were equal");
}

TEST_F(ReadReport, DoesNotTrustWhatItReads) {
  const auto spoil = [](auto& record, std::size_t bytes) { std::memset(static_cast<void*>(&record), 0xff, bytes); };
  spoil(state().iterations, sizeof state().iterations.last() * 3);  // how many there are; all is much
  spoil(state().plans, sizeof state().plans);
  spoil(state().memory, sizeof state().memory);
  spoil(state().costs, sizeof state().costs);
  spoil(state().no_plan, sizeof state().no_plan);
  state().unmanaged_count = ~std::uint64_t{0};
  state().notice_count = ~std::uint64_t{0};
  RunReport report = this->report();
  EXPECT_EQ(report.iterations.size(), kMaxIterations);
  EXPECT_EQ(report.plans.size(), kMaxPlans + 1);
  EXPECT_TRUE(report.unmanaged.empty());
  EXPECT_FALSE(to_table(report).empty());
  report.iterations.resize(1);
  EXPECT_FALSE(to_json(report).empty());
  state().notice_count = kMaxNotices + 2;
  EXPECT_EQ(this->report().notices.back(), "there was no room for 2 more such notes");
}

}  // namespace
}  // namespace spillway
