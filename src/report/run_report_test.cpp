#include "report/run_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/files.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

struct RunReportTest : testing::Test {
  RunReport report;
  void SetUp() override {
    report.wall = Nanos{3'000'000'000};
    report.device_budget = 1_GiB;
    report.policy = "uvm";
  }
  void load_torch() {
    report.made_tensors = true;
    report.managed = Nanos{2'000'000'000};
  }
  void use_auto() {
    report.policy = "auto";
    report.learns = true;
  }
  void learn_and_move() {
    load_torch();
    report.memory.moved(Tier::device, Tier::ssd) = Bytes{1};
    use_auto();
  }
  void add(const IterationFigures& iteration) {
    report.iterations.push_back(iteration);
    if (has_moved(report.memory)) report.iterations.front().in = std::max(report.iterations.front().in, Bytes{1});
    ++report.iteration_count;
  }
  void add(PlanFigures plan) {
    plan.adopted_at_iteration = report.iteration_count + 1;
    report.plans.push_back(plan);
    ++report.plan_count;
  }
  void end_plan(PlanEnd why) {
    report.plans.back().end = why;
    report.plans.back().dropped_at_iteration = report.iteration_count + 1;
  }
  Json json() const { return Json::parse(to_json(report)); }
};

TEST_F(RunReportTest, HoldsAllFigures) {
  load_torch();
  report.eviction_path = EvictionMethod::move;
  report.memory.faults = 7;
  report.memory.written = Bytes{11};
  report.memory.stall = Nanos{1'500'000'000};
  report.memory.peak.device = Bytes{100};
  report.memory.moved(Tier::device, Tier::ssd) = Bytes{10};
  report.memory.moved(Tier::host, Tier::ssd) = Bytes{1};
  report.memory.moved(Tier::ssd, Tier::device) = Bytes{5};
  report.memory.dropped_clean = Bytes{12};
  report.memory.unseen_writes = 13;
  add(IterationFigures{.duration = Nanos{2'000'000'000},
                       .faults = 4,
                       .in = Bytes{50},
                       .out = Bytes{60},
                       .waited = Nanos{500'000'000},
                       .kernels = 7});
  add(IterationFigures{.duration = Nanos{1'000'000'000}, .faults = 3});
  report.exit_status = 139;
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
  EXPECT_TRUE(to_table(report).contains("12 B left unwritten"));
  EXPECT_TRUE(object["error"].is_null());
}

TEST_F(RunReportTest, SaysWhatWritesAreMoreThanMovesAndWhatTheyDoToADrive) {
  load_torch();
  report.memory.moved(Tier::device, Tier::ssd) = 6_GiB;
  report.memory.written = 6_GiB;
  const std::string as_moved = to_table(report);
  EXPECT_TRUE(as_moved.contains("6 GiB written (10.55 TiB an hour), 0 B read")) << as_moved;
  EXPECT_FALSE(as_moved.contains("wears")) << "too little to tell: " << as_moved;
  report.memory.written = 10_GiB;
  const std::string more = to_table(report);
  EXPECT_TRUE(
      more.contains("an hour), 4 GiB of it for moves that were called back or for forked processes, 0 B read\n"
                    "                the SSD is written at a rate that wears a usual 1 TB drive out in 1 day (600 TB)"))
      << more;
}

TEST_F(RunReportTest, HoldsThePlanThatIsFollowed) {
  load_torch();
  EXPECT_TRUE(json()["plan"].is_null());
  add(IterationFigures{.duration = Nanos{2'000'000'000}, .faults = 4});
  add(PlanFigures{.policy = "g10-once", .predicted = Nanos{5}, .link_bound = Nanos{6}, .planning = Nanos{7}});
  add(IterationFigures{.duration = Nanos{1'000'000'000}, .faults = 3});
  add(PlanFigures{.policy = "g10",
                  .optimizer_steps = 2,
                  .predicted = Nanos{1'500'000'000},
                  .predicted_in = Bytes{90},
                  .predicted_out = Bytes{100},
                  .link_bound = Nanos{500'000'000},
                  .least_wait = Nanos{250'000'000},
                  .least_in = Bytes{70},
                  .least_out = Bytes{80},
                  .planning = Nanos{1'000'000}});
  add(IterationFigures{.duration = Nanos{1'000'000'000}});
  const Json object = json();
  EXPECT_EQ(object["plan"], Json::parse(R"({"policy": "g10", "optimizer_steps": 2, "predicted_seconds": 1.5,
                                            "predicted_in_bytes": 90, "predicted_out_bytes": 100,
                                            "link_bound_seconds": 0.5, "least_wait_seconds": 0.25,
                                            "least_in_bytes": 70, "least_out_bytes": 80,
                                            "planning_seconds": 0.001, "adopted_at_iteration": 2,
                                            "followed_since_iteration": 3, "given_up_at_iteration": null,
                                            "given_up_because": null, "read_from": null})"));
  EXPECT_EQ(object["replans"], 1);
  EXPECT_TRUE(
      to_table(report).contains("g10 from iteration 3 on (plan 2; the first was g10-once, from 2 on), predicted "
                                "1.500 s for 2 optimizer steps when it was made, in"));
  add(PlanFigures{.policy = "g10-once", .predicted = Nanos{5}});
  add(IterationFigures{.duration = Nanos{1'000'000'000}});
  EXPECT_TRUE(to_table(report).contains("g10-once from iteration 4 on (plan 3; the first was g10-once, from 2 on)"))
      << to_table(report);
}

TEST_F(RunReportTest, SaysWhyThereIsNoPlan) {
  load_torch();
  EXPECT_TRUE(json()["no_plan_because"].is_null());
  report.exit_status = 137;
  const auto says = [&](NoPlan reason) {
    report.no_plan = {reason, "the detail"};
    EXPECT_TRUE(to_table(report).contains("  plan          none: " + why_no_plan(report) + "\n")) << to_table(report);
    return json()["no_plan_because"].get<std::string>();
  };
  EXPECT_EQ(says(NoPlan::ended), "the script ended with status 137, before one was followed");
  EXPECT_EQ(says(NoPlan::not_measured), "this machine could not be measured");
  EXPECT_EQ(says(NoPlan::failed), "planning failed: the detail");
  EXPECT_EQ(says(NoPlan::no_optimizer),
            "the script made no step of a torch.optim optimizer, by which iterations are told apart");
  EXPECT_EQ(says(NoPlan::no_iteration), "the detail");
  EXPECT_EQ(says(NoPlan::not_followed), "the script ended before it followed the one that was made");
  EXPECT_EQ(says(NoPlan::not_needed), "to go on without one was predicted to be as good");
  EXPECT_EQ(says(NoPlan::not_made), "the script ended before one was made");
  EXPECT_EQ(says(NoPlan{77}), "the script ended with status 137, before one was followed") << "of a broken process";
}

TEST_F(RunReportTest, TellsWhenAPlanWasGivenUpAndTakenUpAgain) {
  learn_and_move();
  const auto iterations = [&](int count) {
    for (int i = 0; i < count; ++i) add(IterationFigures{.duration = Nanos{1'000'000'000}});
  };
  iterations(3);
  add(PlanFigures{.policy = "g10"});
  iterations(4);
  end_plan(PlanEnd::slower);
  iterations(5);
  EXPECT_EQ(json()["plan"]["given_up_at_iteration"], 8);
  EXPECT_EQ(json()["plan"]["given_up_because"], "slower");
  EXPECT_TRUE(to_table(report).contains("; given up at 8, since iterations waited longer than before\n"));
  add(PlanFigures{.policy = "g10"});
  iterations(6);
  EXPECT_TRUE(json()["plan"]["given_up_at_iteration"].is_null());
  EXPECT_EQ(json()["replans"], 1);
  end_plan(PlanEnd::other_iteration);
  iterations(2);
  EXPECT_TRUE(to_table(report).contains("; given up at 19, since the script does something else\n"));
}

TEST_F(RunReportTest, APhaseIsAllIterationsOfItsKind) {
  load_torch();
  using Phases = std::vector<std::pair<std::string_view, std::size_t>>;
  const auto phases = [&](bool learns) {
    report.learns = learns;
    Phases result;
    for (const RunReport::Phase& phase : phases_of(report)) result.emplace_back(to_text(phase.kind), phase.iterations);
    return result;
  };
  for (const bool planned : {false, false, true, true, false, true})
    add(IterationFigures{.duration = Nanos{1'000'000'000}, .planned = planned});
  EXPECT_EQ(phases(true), (Phases{{"in memory", 6}}));
  report.iterations[1].out = Bytes{1};
  EXPECT_EQ(phases(true), (Phases{{"in memory", 1}, {"learning", 2}, {"planned", 3}}));
  report.iterations[0].in = Bytes{1};
  EXPECT_EQ(phases(true), (Phases{{"demand paging", 1}, {"learning", 2}, {"planned", 3}}));
  EXPECT_EQ(phases(false), (Phases{{"demand paging", 3}, {"planned", 3}}));
  EXPECT_EQ(json()["iterations"][4]["phase"], "demand paging");
  EXPECT_EQ(json()["iterations"][5]["phase"], "planned");
}

TEST_F(RunReportTest, IterationsWhoseOperatorsNobodyWatchedAreComparedWithNone) {
  learn_and_move();
  add(IterationFigures{.duration = Nanos{3'000'000'000}});
  add(IterationFigures{.duration = Nanos{2'000'000'000}, .kernels = 100});
  EXPECT_TRUE(to_table(report).contains("1 iteration, 2.000 s and 0 faults each (median)\n")) << to_table(report);
}

TEST_F(RunReportTest, PhasesAreComparedWhereTheyDoAboutTheSame) {
  learn_and_move();
  add(IterationFigures{.duration = Nanos{3'000'000'000}, .kernels = 130});
  add(IterationFigures{.duration = Nanos{2'000'000'000}, .kernels = 100});
  EXPECT_TRUE(to_table(report).contains("0 faults each (median), 1.50 times as fast as the first iteration\n"));
  add(IterationFigures{.duration = Nanos{1'000'000'000}, .kernels = 30, .planned = true});
  EXPECT_TRUE(to_table(report).contains("0 faults each (median), of 30 operators (the first iteration: 130)\n"))
      << to_table(report);
  EXPECT_EQ(json()["phases"][2]["operators_per_iteration"], 30);
  add(IterationFigures{.duration = Nanos{1'000'000'000}, .kernels = 130, .planned = true});
  add(IterationFigures{.duration = Nanos{1'000'000'000}, .kernels = 85, .planned = true});
  EXPECT_TRUE(
      to_table(report).contains("planned       3 iterations, 1.000 s and 0 faults each (median), 2.00 times as "
                                "fast as learning\n"))
      << to_table(report);
}

TEST_F(RunReportTest, APhaseThatIsSlowerThanAnotherTakesTimesAsLong) {
  learn_and_move();
  add(IterationFigures{.duration = Nanos{2'000'000'000}, .kernels = 100});
  add(IterationFigures{.duration = Nanos{3'000'000'000}, .waited = Nanos{2'000'000'000}, .kernels = 100});
  EXPECT_TRUE(to_table(report).contains("(median), 1.50 times as long as the first iteration\n")) << to_table(report);
}

TEST_F(RunReportTest, PhasesAreNotComparedWithOneThatDoesLessInAsManyOperators) {
  learn_and_move();
  add(IterationFigures{.duration = Nanos{1'000'000'000}, .kernels = 100});
  add(IterationFigures{.duration = Nanos{5'000'000'000}, .waited = Nanos{3'400'000'000}, .kernels = 100});
  add(IterationFigures{.duration = Nanos{2'000'000'000}, .kernels = 100, .planned = true});
  const std::string table = to_table(report);
  EXPECT_TRUE(table.contains("learning      1 iteration, 5.000 s and 0 faults each (median)\n")) << table;
  EXPECT_TRUE(
      table.contains("planned       1 iteration, 2.000 s and 0 faults each (median), 2.50 times as fast as learning\n"))
      << table;
}

TEST_F(RunReportTest, SaysWhatOfPlannedIterationsIsInNoPlan) {
  load_torch();
  report.memory.moved(Tier::device, Tier::ssd) = Bytes{1};
  add(IterationFigures{.kernels = 1000});
  add(PlanFigures{.policy = "g10", .predicted = Nanos{1'500'000'000}});
  for (const std::uint64_t others : {7, 130, 120}) {
    const bool is_little = others == 7;
    add(IterationFigures{.kernels = 143 + others, .planned_kernels = 143, .planned = true});
    EXPECT_EQ(without_what(report).empty(), is_little) << others;
  }
  add(PlanFigures{.policy = "g10", .predicted = Nanos{1'500'000'000}});
  add(IterationFigures{.kernels = 143, .planned_kernels = 143, .planned = true});
  EXPECT_TRUE(without_what(report).empty()) << "the last plan knows of all";
  add(IterationFigures{.kernels = 263, .planned_kernels = 143, .planned = true});
  EXPECT_TRUE(to_table(report).contains(
      "predicted 1.500 s, without the 120 of 263 operators that are no part of it, when it was made"))
      << to_table(report);
}

TEST_F(RunReportTest, NamesTheFilesThatAPlanWasReadFromAndWrittenTo) {
  load_torch();
  report.given_plan = "/here/my.plan";
  add(PlanFigures{.policy = "g10", .given = 1});
  add(IterationFigures{});
  EXPECT_EQ(json()["plan"]["read_from"], "/here/my.plan");
  EXPECT_TRUE(to_table(report).contains("g10 of /here/my.plan from iteration 1 on"));
  EXPECT_TRUE(json()["plan_file"].is_null());
  report.recorded_plan = "/there/blocks.plan";
  EXPECT_EQ(json()["plan_file"], "/there/blocks.plan");
  add(PlanFigures{.policy = "g10"});
  add(IterationFigures{});
  EXPECT_TRUE(json()["plan"]["read_from"].is_null()) << "the run's own has taken its place";
}

TEST_F(RunReportTest, HoldsTheTensorsThatMovedMost) {
  load_torch();
  EXPECT_EQ(json()["most_moved_tensors"], Json::array());
  report.costs = {
      {.name = "activation17", .maker = "aten::mm", .bytes = 96_MiB, .moved = 1_GiB, .waited_for = 300_MiB}};
  EXPECT_EQ(json()["most_moved_tensors"],
            Json::parse(R"([{"name": "activation17", "made_by": "aten::mm", "bytes": 100663296,
                             "moved_bytes": 1073741824, "waited_for_bytes": 314572800}])"));
  EXPECT_TRUE(
      to_table(report).contains("\n  most moved    activation17 made by aten::mm, 96 MiB: 1 GiB moved, 300 MiB of "
                                "it when it was waited for\n"))
      << to_table(report);
  report.costs = {{.moved = 1_GiB}};
  EXPECT_TRUE(json()["most_moved_tensors"][0]["name"].is_null());
  EXPECT_TRUE(to_table(report).contains("most moved    made by no operator, 0 B: 1 GiB moved")) << to_table(report);
}

TEST_F(RunReportTest, EndsWithAdvice) {
  EXPECT_TRUE(json()["advice"].is_null()) << "there was nothing to manage";
  load_torch();
  EXPECT_EQ(json()["advice"]["kind"], "fits");
  report.memory.moved(Tier::device, Tier::ssd) = Bytes{10};
  EXPECT_EQ(json()["advice"]["kind"], "waits");
  EXPECT_TRUE(to_table(report).ends_with("  advice        some thread waited for memory in 0.000 of 2.000 s\n"))
      << to_table(report);
}

TEST_F(RunReportTest, OneReasonIsGivenOnce) {
  load_torch();
  use_auto();
  report.memory.moved(Tier::device, Tier::ssd) = Bytes{10};
  report.no_plan = {NoPlan::no_iteration, "nothing repeats itself"};
  report.not_recorded = "nothing repeats itself";
  EXPECT_TRUE(
      to_table(report).contains("  plan          none: nothing repeats itself\n"
                                "  trace         none, for the reason that there is no plan\n"))
      << to_table(report);
}

TEST_F(RunReportTest, PredictionsNameTheLeast) {
  load_torch();
  report.predictions = {{.part = 0.5, .device = 32_MiB, .iteration = {}, .policy = {}}};
  report.least_device_budget = 64_MiB;
  EXPECT_TRUE(to_table(report).contains("once a plan of --policy auto is followed (a run needs 64 MiB at least):\n"))
      << to_table(report);
  EXPECT_TRUE(to_table(report).contains("cannot run")) << to_table(report);
  report.least_device_budget = 32_MiB;
  report.has_optimizer = false;
  EXPECT_TRUE(
      to_table(report).contains("Predicted with less memory, without a plan, since the script made no step of"));
  report.has_optimizer = true;
  EXPECT_TRUE(to_table(report).contains("once a plan of --policy auto is followed:\n")) << to_table(report);
  EXPECT_FALSE(to_table(report).contains("cannot run")) << to_table(report);
  EXPECT_TRUE(to_table(report).contains("\nnot known: what no plan moves")) << to_table(report);
}

TEST_F(RunReportTest, PredictionsSayWhereTheScriptDoesSomethingElseByNow) {
  load_torch();
  report.predictions = {{.part = 0.5, .device = 32_MiB, .iteration = {}, .policy = {}}};
  report.unlimited_iteration = Nanos{100'000'000};
  report.recorded_steps = 1;
  const auto says = [&](std::uint64_t last) {
    report.iterations.assign(9, {.duration = Nanos{100'000'000}});
    for (std::size_t i = 6; i < 9; ++i) report.iterations[i].duration = Nanos{last};
    return to_table(report).contains(
        fmt::format("\nThey are for iterations of 0.100 s, which were recorded; the last ones took {:.3f} s",
                    seconds(Nanos{last})));
  };
  EXPECT_FALSE(says(199'000'000));
  EXPECT_TRUE(says(201'000'000));
  EXPECT_FALSE(says(51'000'000));
  EXPECT_TRUE(says(49'000'000));
  report.recorded_steps = 2;
  EXPECT_FALSE(says(49'000'000)) << "batches of two shapes in turns: each iteration is a part of the recorded one";
}

TEST_F(RunReportTest, HasAllFieldsWhenNothingHappened) {
  const Json object = json();
  for (const char* name :
       {"spillway", "exit_status", "policy", "eviction_path", "device_budget_bytes", "peak_device_bytes",
        "peak_ssd_bytes", "unmanaged_peak_bytes", "faults", "moved_bytes", "stall_seconds", "iterations"})
    EXPECT_TRUE(object.contains(name)) << name;
  EXPECT_EQ(to_table(report).find('\n'), to_table(report).size() - 1) << "one line";
  EXPECT_TRUE(to_table(report).contains("made no tensors"));
}

void add_keys(const Json& value, std::set<std::string>& keys) {
  for (const auto& [key, part] : value.items()) {
    if (value.is_object()) keys.insert(key);
    if (part.is_structured()) add_keys(part, keys);
  }
}

TEST_F(RunReportTest, SaysWhatAGpuDid) {
  load_torch();
  report.gpu = RunReport::Gpu{.device = "cuda:1",
                              .name = "NVIDIA H200",
                              .cuda_version = 12080,
                              .block_bytes = 8_MiB,
                              .pinned_budget = 8_GiB,
                              .strict = true,
                              .figures = {.held_launches = 41,
                                          .blind_launches = 1,
                                          .mappings = 200,
                                          .mapping = Nanos{12'000'000},
                                          .pinned_peak = 1_GiB,
                                          .checked_launches = 2}};
  const std::string text = to_table(report);
  EXPECT_TRUE(text.contains("cuda:1, NVIDIA H200 (its driver knows CUDA 12.8)")) << text;
  EXPECT_TRUE(
      text.contains("41 launches waited for memory; 200 blocks of 8 MiB mapped or unmapped, 60 us each; 1 GiB of host "
                    "memory pinned of 8 GiB; 1 launch outside of operators may have touched more"))
      << text;
  EXPECT_TRUE(text.contains("strict: 2 launches were checked")) << text;
  EXPECT_FALSE(text.contains("eviction path"));
  const Json object = json();
  EXPECT_EQ(object["device"], "cuda:1");
  EXPECT_EQ(object["gpu"]["checked_launches"], 2);
  EXPECT_EQ(object["gpu"]["strict"], true);
  EXPECT_EQ(object["gpu"]["block_bytes"], 8 << 20);
  EXPECT_EQ(object["gpu"]["mapping_seconds"], 0.012);
  EXPECT_TRUE(object["eviction_path"].is_null());
  report.made_tensors = false;
  EXPECT_TRUE(to_table(report).contains("--device cpu"));
}

TEST_F(RunReportTest, EveryFieldIsExplained) {
  RunReport& full = report;
  full.made_tensors = true;
  full.iterations.emplace_back();
  full.plans.emplace_back();
  full.predictions.emplace_back();
  full.costs.emplace_back();
  full.unmanaged.emplace_back();
  full.gpu = RunReport::Gpu{};
  std::set<std::string> keys;
  add_keys(Json::parse(to_json(full)), keys);
  EXPECT_TRUE(keys.contains("waited_for_bytes") && keys.contains("given_up_because") && keys.contains("sentence"));
  const auto page = read_file("docs/formats/report.md", 1_MiB);  // tests run in the project's root
  ASSERT_TRUE(page);
  for (const std::string& key : keys) EXPECT_NE(page->find("`" + key + "`"), std::string::npos) << key;
}

TEST_F(RunReportTest, SurvivesNamesThatAreNotUtf8) {
  load_torch();
  report.unmanaged_count = 1;
  report.unmanaged = {{.pid = 5, .name = "\xff\xfe train"}};
  EXPECT_EQ(json()["unmanaged_processes"][0]["pid"], 5);
  EXPECT_TRUE(to_table(report).contains("train (pid 5)"));
}

TEST_F(RunReportTest, TheTableLinesUpAndNamesTheWorst) {
  load_torch();
  report.notices = {"torch.compile is in use"};
  report.not_recorded = "no two iterations were equal";
  report.unmanaged_count = 1;
  report.unmanaged = {{.pid = 5, .name = "python3 worker.py"}};
  report.left_behind = "sleep";
  for (std::uint64_t i = 1; i <= 5; ++i) add(IterationFigures{.duration = Nanos{i * 1'000'000'000}, .faults = i});
  EXPECT_EQ(to_table(report),
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
