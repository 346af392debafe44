#include "session/read_report.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/files.h"
#include "session/hook_side.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

struct RunReportTest : testing::Test {
  Result<SharedSession> session = SharedSession::create();
  Supervised ended;
  void SetUp() override {
    ASSERT_TRUE(session);
    ended.started = true;
    ended.wall = Nanos{3'000'000'000};
    ended.ended = Nanos{10'000'000'000};
    (*session)->config.device_budget_bytes = (1_GiB).value;
    ASSERT_TRUE(set_text((*session)->config.policy, "uvm", "policy"));
  }
  SessionState& state() { return (*session)->state; }
  void load_torch() {
    state().owner_pid = 42;
    state().owner_since_ns = 8'000'000'000;  // managed for 2 s
  }
  RunReport report() { return read_report(**session, ended); }
  Json json() { return Json::parse(to_json(report())); }
};

TEST_F(RunReportTest, HoldsWhatTheHookCounted) {
  load_torch();
  state().eviction_path = EvictionMethod::move;
  state().faults = 7;
  state().ssd_written_bytes = 11;
  state().stall_ns = 1'500'000'000;
  state().peak_device_bytes = 100;
  state().moved(Tier::device, Tier::ssd) = 10;
  state().moved(Tier::host, Tier::ssd) = 1;
  state().moved(Tier::ssd, Tier::device) = 5;
  state().clean_drops_bytes = 12;
  state().unseen_writes = 13;
  EXPECT_FALSE(report().ssd_read_rate);
  state().ssd_read_rate = 14;
  EXPECT_EQ(report().ssd_read_rate, BytesPerSecond{14});
  EXPECT_FALSE(report().ssd_write_rate);
  add_iteration(**session, {.duration_ns = 2'000'000'000,
                            .faults = 4,
                            .moved_in_bytes = 50,
                            .moved_out_bytes = 60,
                            .waited_ns = 500'000'000,
                            .kernels = 7});
  add_iteration(**session, {.duration_ns = 1'000'000'000, .faults = 3});
  ended.exit_status = 139;
  const Json object = json();
  EXPECT_EQ(object["exit_status"], 139);
  EXPECT_EQ(object["policy"], "uvm");
  EXPECT_EQ(object["eviction_path"], "move");
  EXPECT_EQ(object["device_budget_bytes"], (1_GiB).value);
  EXPECT_EQ(object["peak_device_bytes"], 100);
  EXPECT_EQ(object["faults"], 7);
  EXPECT_EQ(object["stall_seconds"], 1.5);
  EXPECT_EQ(object["moved_bytes"]["device_to_ssd"], 10);
  EXPECT_EQ(object["moved_bytes"]["ssd_to_device"], 5);
  EXPECT_EQ(object["moved_bytes"].size(), 6u);
  EXPECT_EQ(object["ssd_written_bytes"], 11);
  EXPECT_EQ(object["ssd_written_bytes_per_hour"], 11 * 1800);
  EXPECT_EQ(object["iterations"], Json::parse(R"([
    {"phase": "demand paging", "seconds": 2.0, "faults": 4, "moved_in_bytes": 50, "moved_out_bytes": 60,
     "waited_seconds": 0.5, "operators": 7, "planned_operators": 0},
    {"phase": "demand paging", "seconds": 1.0, "faults": 3, "moved_in_bytes": 0, "moved_out_bytes": 0,
     "waited_seconds": 0.0, "operators": 0, "planned_operators": 0}])"));
  EXPECT_EQ(object["clean_drops_bytes"], 12);
  EXPECT_EQ(object["unseen_writes"], 13);
  EXPECT_NE(to_table(report()).find("12 B left unwritten"), std::string::npos);
  EXPECT_TRUE(object["error"].is_null());
}

TEST_F(RunReportTest, SaysWhatWritesAreMoreThanMovesAndWhatTheyDoToADrive) {
  load_torch();
  state().moved(Tier::device, Tier::ssd) = (6_GiB).value;
  state().ssd_written_bytes = (6_GiB).value;
  const std::string as_moved = to_table(report());
  EXPECT_NE(as_moved.find("6 GiB written (10.55 TiB an hour), 0 B read"), std::string::npos) << as_moved;
  EXPECT_EQ(as_moved.find("wears"), std::string::npos) << "too little to tell: " << as_moved;
  state().ssd_written_bytes = (10_GiB).value;
  const std::string more = to_table(report());
  EXPECT_NE(
      more.find("an hour), 4 GiB of it for moves that were called back or for forked processes, 0 B read\n"
                "                the SSD is written at a rate that wears a usual 1 TB drive out in 1 day (600 TB)"),
      std::string::npos)
      << more;
}

TEST_F(RunReportTest, HoldsThePlanThatIsFollowed) {
  load_torch();
  EXPECT_TRUE(json()["plan"].is_null());
  add_iteration(**session, {.duration_ns = 2'000'000'000, .faults = 4});
  add_plan(**session, "g10-once", {.predicted_ns = 5, .link_bound_ns = 6, .planning_ns = 7});
  add_iteration(**session, {.duration_ns = 1'000'000'000, .faults = 3});
  add_plan(**session, "g10",
           {.predicted_ns = 1'500'000'000,
            .link_bound_ns = 500'000'000,
            .least_wait_ns = 250'000'000,
            .planning_ns = 1'000'000,
            .least_in_bytes = 70,
            .least_out_bytes = 80,
            .predicted_in_bytes = 90,
            .predicted_out_bytes = 100,
            .optimizer_steps = 2});
  add_iteration(**session, {.duration_ns = 1'000'000'000});
  const Json object = json();
  EXPECT_EQ(object["plan"], Json::parse(R"({"policy": "g10", "optimizer_steps": 2, "predicted_seconds": 1.5,
                                            "predicted_in_bytes": 90, "predicted_out_bytes": 100,
                                            "link_bound_seconds": 0.5, "least_wait_seconds": 0.25,
                                            "least_in_bytes": 70, "least_out_bytes": 80,
                                            "planning_seconds": 0.001, "adopted_at_iteration": 2,
                                            "followed_since_iteration": 3, "given_up_at_iteration": null,
                                            "given_up_because": null, "read_from": null})"));
  EXPECT_EQ(object["replans"], 1);
  EXPECT_NE(to_table(report()).find("g10 from iteration 3 on (plan 2; the first was g10-once, from 2 on), predicted "
                                    "1.500 s for 2 optimizer steps when it was made, in"),
            std::string::npos);
  add_plan(**session, "g10-once", {.predicted_ns = 5});
  add_iteration(**session, {.duration_ns = 1'000'000'000});
  EXPECT_NE(to_table(report()).find("g10-once from iteration 4 on (plan 3; the first was g10-once, from 2 on)"),
            std::string::npos)
      << to_table(report());
}

TEST_F(RunReportTest, KnowsAlsoWhereNothingMovedThatNothingCanBePlannedFor) {
  load_torch();
  EXPECT_TRUE(report().has_optimizer);
  state().not_planned.set(kNoOptimizer);
  EXPECT_FALSE(report().has_optimizer);
  EXPECT_EQ(report().not_planned, "");
}

TEST_F(RunReportTest, SaysWhyThereIsNoPlan) {
  load_torch();
  ASSERT_TRUE(set_text((*session)->config.policy, "auto", "--policy"));
  EXPECT_EQ(report().not_planned, "") << "Nothing had to move.";
  state().moved(Tier::device, Tier::ssd) = 1;
  EXPECT_EQ(report().not_planned, "this machine could not be measured");
  (*session)->config.rates.copy = 1;
  ended.exit_status = 137;
  EXPECT_EQ(report().not_planned, "the script ended with status 137, before one was followed");
  state().not_planned.set("no iteration");
  EXPECT_EQ(json()["no_plan_because"], "no iteration");
  EXPECT_NE(to_table(report()).find("  plan          none: no iteration\n"), std::string::npos);
  add_plan(**session, "g10", {});
  add_iteration(**session, {.duration_ns = 1'000'000'000, .planned = true});
  EXPECT_TRUE(json()["no_plan_because"].is_null());
}

TEST_F(RunReportTest, TellsWhenAPlanWasGivenUpAndTakenUpAgain) {
  load_torch();
  state().moved(Tier::device, Tier::ssd) = 1;
  ASSERT_TRUE(set_text((*session)->config.policy, "auto", "--policy"));
  const auto iterations = [&](int count) {
    for (int i = 0; i < count; ++i) add_iteration(**session, {.duration_ns = 1'000'000'000});
  };
  iterations(3);
  add_plan(**session, "g10", {});
  iterations(4);
  end_plan(**session, PlanEnd::slower);
  iterations(5);
  EXPECT_EQ(json()["plan"]["given_up_at_iteration"], 8);
  EXPECT_EQ(json()["plan"]["given_up_because"], "slower");
  EXPECT_NE(to_table(report()).find("; given up at 8, since iterations waited longer than before\n"),
            std::string::npos);
  add_plan(**session, "g10", {});
  iterations(6);
  EXPECT_TRUE(json()["plan"]["given_up_at_iteration"].is_null());
  EXPECT_EQ(json()["replans"], 1);
  end_plan(**session, PlanEnd::other_iteration);
  iterations(2);
  EXPECT_NE(to_table(report()).find("; given up at 19, since the script does something else\n"), std::string::npos);
}

TEST_F(RunReportTest, APhaseIsAllIterationsOfItsKind) {
  load_torch();
  const auto phases = [&](std::string_view policy) {
    (*session)->config.policy = {};
    EXPECT_TRUE(set_text((*session)->config.policy, policy, "--policy"));
    std::vector<std::pair<std::string, std::size_t>> result;
    for (const RunReport::Phase& phase : phases_of(report())) result.emplace_back(phase.name, phase.iterations);
    return result;
  };
  using Phases = decltype(phases(""));
  for (const bool planned : {false, false, true, true, false, true})
    add_iteration(**session, {.duration_ns = 1'000'000'000, .planned = planned});
  EXPECT_EQ(phases("auto"), (Phases{{"in memory", 6}}));
  state().moved(Tier::device, Tier::ssd) = 1;
  EXPECT_EQ(phases("auto"), (Phases{{"demand paging", 1}, {"learning", 2}, {"planned", 3}}));
  EXPECT_EQ(phases("g10"), (Phases{{"demand paging", 3}, {"planned", 3}}));
  EXPECT_EQ(json()["iterations"][4]["phase"], "demand paging");
  EXPECT_EQ(json()["iterations"][5]["phase"], "planned");
}

TEST_F(RunReportTest, PhasesAreComparedWhereTheyDoAboutTheSame) {
  load_torch();
  state().moved(Tier::device, Tier::ssd) = 1;
  ASSERT_TRUE(set_text((*session)->config.policy, "auto", "--policy"));
  add_iteration(**session, {.duration_ns = 3'000'000'000, .kernels = 130});
  add_iteration(**session, {.duration_ns = 2'000'000'000, .kernels = 100});
  EXPECT_TRUE(to_table(report()).contains("0 faults each (median), 1.50 times as fast as the first iteration\n"));
  add_iteration(**session, {.duration_ns = 1'000'000'000, .kernels = 30, .planned = true});
  EXPECT_TRUE(to_table(report()).contains("0 faults each (median), of 30 operators (the first iteration: 130)\n"))
      << to_table(report());
  EXPECT_EQ(json()["phases"][2]["operators_per_iteration"], 30);
  add_iteration(**session, {.duration_ns = 1'000'000'000, .kernels = 130, .planned = true});
  add_iteration(**session, {.duration_ns = 1'000'000'000, .kernels = 85, .planned = true});
  EXPECT_TRUE(
      to_table(report()).contains("planned       3 iterations, 1.000 s and 0 faults each (median), 2.00 times as "
                                  "fast as learning\n"))
      << to_table(report());
}

TEST_F(RunReportTest, APhaseThatIsSlowerThanAnotherTakesTimesAsLong) {
  load_torch();
  state().moved(Tier::device, Tier::ssd) = 1;
  ASSERT_TRUE(set_text((*session)->config.policy, "auto", "--policy"));
  add_iteration(**session, {.duration_ns = 2'000'000'000, .kernels = 100});
  add_iteration(**session, {.duration_ns = 3'000'000'000, .waited_ns = 2'000'000'000, .kernels = 100});
  EXPECT_TRUE(to_table(report()).contains("(median), 1.50 times as long as the first iteration\n"))
      << to_table(report());
}

TEST_F(RunReportTest, PhasesAreNotComparedWithOneThatDoesLessInAsManyOperators) {
  load_torch();
  state().moved(Tier::device, Tier::ssd) = 1;
  ASSERT_TRUE(set_text((*session)->config.policy, "auto", "--policy"));
  add_iteration(**session, {.duration_ns = 1'000'000'000, .kernels = 100});
  add_iteration(**session, {.duration_ns = 5'000'000'000, .waited_ns = 3'400'000'000, .kernels = 100});
  add_iteration(**session, {.duration_ns = 2'000'000'000, .kernels = 100, .planned = true});
  const std::string table = to_table(report());
  EXPECT_TRUE(table.contains("learning      1 iteration, 5.000 s and 0 faults each (median)\n")) << table;
  EXPECT_TRUE(
      table.contains("planned       1 iteration, 2.000 s and 0 faults each (median), 2.50 times as fast as learning\n"))
      << table;
}

TEST_F(RunReportTest, SaysWhatOfPlannedIterationsIsInNoPlan) {
  load_torch();
  state().moved(Tier::device, Tier::ssd) = 1;
  add_iteration(**session, {.kernels = 1000});
  add_plan(**session, "g10", {.predicted_ns = 1'500'000'000});
  for (const std::uint64_t others : {7, 130, 120}) {
    const bool is_little = others == 7;
    add_iteration(**session, {.kernels = 143 + others, .planned_kernels = 143, .planned = true});
    EXPECT_EQ(without_what(report()).empty(), is_little) << others;
  }
  add_plan(**session, "g10", {.predicted_ns = 1'500'000'000});
  add_iteration(**session, {.kernels = 143, .planned_kernels = 143, .planned = true});
  EXPECT_TRUE(without_what(report()).empty()) << "the last plan knows of all";
  add_iteration(**session, {.kernels = 263, .planned_kernels = 143, .planned = true});
  EXPECT_NE(to_table(report()).find(
                "predicted 1.500 s, without the 120 of 263 operators that are no part of it, when it was made"),
            std::string::npos)
      << to_table(report());
}

TEST_F(RunReportTest, APlanThatNoIterationHasFollowedIsNotTold) {
  load_torch();
  add_iteration(**session, {});
  add_plan(**session, "g10", {});
  EXPECT_TRUE(json()["plan"].is_null());
  add_iteration(**session, {});
  add_plan(**session, "g10-clean", {});
  EXPECT_EQ(json()["plan"]["policy"], "g10");
  EXPECT_EQ(json()["replans"], 0);
}

TEST_F(RunReportTest, OfVeryManyPlansTheLastIsTold) {
  load_torch();
  for (std::uint64_t plan = 0; plan <= 2 * kMaxPlans; ++plan) {
    add_plan(**session, plan % 2 == 0 ? "g10-clean" : "g10", {.predicted_in_bytes = plan});
    add_iteration(**session, {.duration_ns = 1'000'000'000});
  }
  end_plan(**session, PlanEnd::not_needed);
  const Json plan = json()["plan"];
  EXPECT_EQ(plan["policy"], "g10-clean");
  EXPECT_EQ(plan["predicted_in_bytes"], 2 * kMaxPlans);
  EXPECT_EQ(plan["followed_since_iteration"], 2 * kMaxPlans + 1);
  EXPECT_EQ(plan["given_up_because"], "not_needed");
  EXPECT_EQ(json()["replans"], 2 * kMaxPlans);
}

TEST_F(RunReportTest, NamesTheFilesThatAPlanWasReadFromAndWrittenTo) {
  load_torch();
  ASSERT_TRUE(set_text((*session)->config.plan_path, "/here/my.plan", "--plan"));
  ASSERT_TRUE(set_text((*session)->config.blocks_path, "/there/blocks", "--record"));
  add_plan(**session, "g10", {.given = true});
  add_iteration(**session, {});
  EXPECT_EQ(json()["plan"]["read_from"], "/here/my.plan");
  EXPECT_NE(to_table(report()).find("g10 of /here/my.plan from iteration 1 on"), std::string::npos);
  EXPECT_TRUE(json()["plan_file"].is_null());
  state().plan_recorded = 1;
  EXPECT_EQ(json()["plan_file"], "/there/blocks.plan");
  add_plan(**session, "g10", {});
  add_iteration(**session, {});
  EXPECT_TRUE(json()["plan"]["read_from"].is_null()) << "the run's own has taken its place";
}

TEST_F(RunReportTest, HoldsTheTensorsThatMovedMostAsTheyWereToldLast) {
  load_torch();
  EXPECT_EQ(json()["most_moved_tensors"], Json::array());
  const std::array first{CostFigures{.name = "weight1", .maker = "aten::empty", .bytes = 1, .moved_bytes = 2},
                         CostFigures{.name = "weight2", .maker = "aten::empty", .bytes = 1, .moved_bytes = 1}};
  set_costs(**session, first);
  const std::array last{CostFigures{.name = "activation17",
                                    .maker = "aten::mm",
                                    .bytes = (96_MiB).value,
                                    .moved_bytes = (1_GiB).value,
                                    .waited_for_bytes = (300_MiB).value}};
  set_costs(**session, last);
  EXPECT_EQ(json()["most_moved_tensors"],
            Json::parse(R"([{"name": "activation17", "made_by": "aten::mm", "bytes": 100663296,
                             "moved_bytes": 1073741824, "waited_for_bytes": 314572800}])"));
  EXPECT_NE(to_table(report()).find("\n  most moved    activation17 made by aten::mm, 96 MiB: 1 GiB moved, 300 MiB of "
                                    "it when it was waited for\n"),
            std::string::npos)
      << to_table(report());
}

TEST_F(RunReportTest, EndsWithAdvice) {
  EXPECT_TRUE(json()["advice"].is_null()) << "there was nothing to manage";
  load_torch();
  EXPECT_EQ(json()["advice"]["kind"], "fits");
  state().moved(Tier::device, Tier::ssd) = 10;
  EXPECT_EQ(json()["advice"]["kind"], "waits");
  EXPECT_TRUE(to_table(report()).ends_with("  advice        some thread waited for memory in 0.000 of 2.000 s\n"))
      << to_table(report());
}

TEST_F(RunReportTest, OneReasonIsGivenOnce) {
  load_torch();
  ASSERT_TRUE(set_text((*session)->config.policy, "auto", "policy"));
  (*session)->config.rates.copy = 1;
  state().moved(Tier::device, Tier::ssd) = 10;
  state().not_planned.set("nothing repeats itself");
  state().not_recorded.set("nothing repeats itself");
  EXPECT_NE(to_table(report()).find("  plan          none: nothing repeats itself\n"
                                    "  trace         none, for the reason that there is no plan\n"),
            std::string::npos)
      << to_table(report());
}

TEST_F(RunReportTest, PredictionsNameTheLeast) {
  load_torch();
  RunReport report = this->report();
  report.predictions = {{.part = 0.5, .device = 32_MiB, .iteration = {}, .policy = {}}};
  report.least_device_budget = 64_MiB;
  EXPECT_NE(to_table(report).find("once a plan of --policy auto is followed (a run needs 64 MiB at least):\n"),
            std::string::npos)
      << to_table(report);
  EXPECT_NE(to_table(report).find("cannot run"), std::string::npos) << to_table(report);
  report.least_device_budget = 32_MiB;
  report.has_optimizer = false;
  EXPECT_TRUE(
      to_table(report).contains("Predicted with less memory, without a plan, since the script made no step of"));
  report.has_optimizer = true;
  EXPECT_NE(to_table(report).find("once a plan of --policy auto is followed:\n"), std::string::npos)
      << to_table(report);
  EXPECT_EQ(to_table(report).find("cannot run"), std::string::npos) << to_table(report);
  EXPECT_NE(to_table(report).find("\nnot known: what no plan moves"), std::string::npos) << to_table(report);
}

TEST_F(RunReportTest, HasAllFieldsWhenNothingHappened) {
  const Json object = json();
  for (const char* name :
       {"spillway", "exit_status", "policy", "eviction_path", "device_budget_bytes", "peak_device_bytes",
        "peak_ssd_bytes", "unmanaged_peak_bytes", "faults", "moved_bytes", "stall_seconds", "iterations"})
    EXPECT_TRUE(object.contains(name)) << name;
  EXPECT_EQ(to_table(report()).find('\n'), to_table(report()).size() - 1) << "one line";
  EXPECT_NE(to_table(report()).find("made no tensors"), std::string::npos);
}

void add_keys(const Json& value, std::set<std::string>& keys) {
  for (const auto& [key, part] : value.items()) {
    if (value.is_object()) keys.insert(key);
    if (part.is_structured()) add_keys(part, keys);
  }
}

TEST_F(RunReportTest, EveryFieldIsExplained) {
  RunReport full = report();
  full.made_tensors = true;
  full.iterations.emplace_back();
  full.plans.emplace_back();
  full.predictions.emplace_back();
  full.costs.emplace_back();
  full.unmanaged.emplace_back();
  std::set<std::string> keys;
  add_keys(Json::parse(to_json(full)), keys);
  EXPECT_TRUE(keys.contains("waited_for_bytes") && keys.contains("given_up_because") && keys.contains("sentence"));
  const auto page = read_file("docs/formats/report.md", 1_MiB);  // tests run in the project's root
  ASSERT_TRUE(page);
  for (const std::string& key : keys) EXPECT_NE(page->find("`" + key + "`"), std::string::npos) << key;
}

TEST_F(RunReportTest, SurvivesNamesThatAreNotUtf8) {
  load_torch();
  state().unmanaged_count = 1;
  state().unmanaged[0].pid = 5;
  state().unmanaged[0].name.set("\xff\xfe train");
  EXPECT_EQ(json()["unmanaged_processes"][0]["pid"], 5);
  EXPECT_NE(to_table(report()).find("train (pid 5)"), std::string::npos);
}

TEST_F(RunReportTest, DoesNotTrustTheCounts) {
  load_torch();
  state().iteration_count = ~std::uint64_t{0};
  state().unmanaged_count = ~std::uint64_t{0};
  state().notice_count = ~std::uint64_t{0};
  state().plan_count = ~std::uint64_t{0};
  EXPECT_EQ(report().iterations.size(), kMaxIterations);
  EXPECT_TRUE(report().unmanaged.empty());
  EXPECT_FALSE(to_table(report()).empty());
  state().notice_count = kMaxNotices + 2;
  EXPECT_EQ(report().notices.back(), "there was no room for 2 more such notes");
}

TEST_F(RunReportTest, TheTableLinesUpAndNamesTheWorst) {
  load_torch();
  state().notices[0].set("torch.compile is in use");
  state().not_recorded.set("no two iterations were equal");
  state().unmanaged_count = 1;
  state().unmanaged[0].pid = 5;
  state().unmanaged[0].name.set("python3 worker.py");
  ended.left_behind = "sleep";
  for (std::uint64_t i = 1; i <= 5; ++i) add_iteration(**session, {.duration_ns = i * 1'000'000'000, .faults = i});
  EXPECT_EQ(to_table(report()),
            std::string("spillway ") + SPILLWAY_VERSION + R"(: the script ended with status 0 after 3.0 s
  policy        uvm, eviction path automatic
  device memory peak 0 B of a budget of 1 GiB
  ssd           peak 0 B; 0 B written (0 B an hour), 0 B read
  faults        0, and 0 first touches; some thread waited 0.000 s for memory
  iterations    5: first 1.000 s (1 fault), median 3.000 s, last 5.000 s (5 faults)
  unmanaged     1 process besides the first that made tensors: python3 worker.py (pid 5)
  ended         still running after the script: sleep
  trace         none: no two iterations were equal
  note          torch.compile is in use
)");
}

}  // namespace
}  // namespace spillway
