#include "reproduce/runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reproduce/run_experiment.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() {
    for (const std::uint64_t seed : {1u, 2u}) {
      Trace trace = random_trace(seed);
      const std::string hash = trace_hash(*to_json(trace));
      traces_.emplace(seed == 1 ? "one" : "two", LoadedTrace{.trace = std::move(trace), .hash = hash});
    }
    std::string name = testing::TempDir() + "reproduceXXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~RunnerTest() override { fs::remove_all(folder_); }

  RunResult run(const std::vector<Experiment>& experiments, unsigned jobs, const std::string& program = "p") {
    dones_.clear();
    auto result = run_experiments(experiments, traces_, {.jobs = jobs, .cache_folder = folder_, .program = program},
                                  [&](std::size_t done) { dones_.push_back(done); });
    EXPECT_TRUE(result) << result.error().message;
    return result ? *std::move(result) : RunResult{};
  }

  std::vector<Experiment> some_experiments() const {
    std::vector<Experiment> all;
    for (const std::string model : {"one", "two"})
      for (const std::string policy : {"ideal", "uvm", "g10"})
        all.push_back({.model = model, .policy = policy, .overrides = {"device.memory=64MiB"}});
    return all;
  }

  Traces traces_;
  std::string folder_;
  std::vector<std::size_t> dones_;
};

TEST_F(RunnerTest, RunsEachExperimentOnceAndTellsHowFarItIs) {
  const std::vector<Experiment> once = some_experiments();
  std::vector<Experiment> twice = once;
  twice.insert(twice.end(), once.begin(), once.begin() + 3);
  const RunResult result = run(twice, 2);
  EXPECT_EQ(result.outcomes.size(), 6u);
  EXPECT_EQ(result.count.simulated, 6u);
  EXPECT_EQ(dones_, (std::vector<std::size_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(RunnerTest, ThreadsAndTheCacheChangeNothing) {
  const RunResult alone = run(some_experiments(), 1, "alone"), together = run(some_experiments(), 4, "together");
  const RunResult kept = run(some_experiments(), 2, "alone");
  EXPECT_EQ(kept.count.from_cache, 6u);
  EXPECT_EQ(kept.count.simulated, 0u);
  for (const auto& [experiment, outcome] : alone.outcomes)
    for (const RunResult* other : {&together, &kept}) {
      const Outcome& same = other->outcomes.at(experiment);
      EXPECT_EQ(same.feasible, outcome.feasible);
      EXPECT_EQ(same.iteration_seconds, outcome.iteration_seconds);
      EXPECT_EQ(same.slowdown, outcome.slowdown);
      EXPECT_EQ(same.moved(Tier::device, Tier::host), outcome.moved(Tier::device, Tier::host));
    }
}

TEST_F(RunnerTest, WhatChangesAResultIsSimulatedAnew) {
  const Experiment first{.model = "one", .policy = "uvm", .overrides = {"device.memory=64MiB"}};
  run({first}, 1);
  Experiment memory = first, policy = first, noise = first, model = first;
  memory.overrides = {"device.memory=65MiB"};
  policy.policy = "uvm:pool=1";
  noise.noise_percent = 10;
  model.model = "two";
  for (const Experiment& other : {memory, policy, noise, model}) EXPECT_EQ(run({other}, 1).count.simulated, 1u);
  EXPECT_EQ(run({first}, 1, "another program").count.simulated, 1u);
  EXPECT_EQ(run({first}, 1).count.from_cache, 1u);
}

TEST_F(RunnerTest, OtherJobsOrTimesOrBudgetsAreOtherExperiments) {
  const Experiment first{.model = "one", .policy = "tensile:shrink=1", .machine = "a6000", .iterations = 2};
  Experiment longer = first, beside = first, later = first, learned = first, budget = first, estimates = first,
             bytes = first;
  longer.iterations = 3;
  beside.beside = {{"two"}};
  later.beside = {{"two", 1}};
  learned.learned_from = {"two"};
  budget.budget_of = "vdnn";
  estimates.estimates_percent = 200;
  bytes.bytes_percent = 200;
  EXPECT_EQ(run({first}, 1).count.simulated, 1u);
  for (const Experiment& other : {longer, beside, later, learned, budget, estimates, bytes})
    EXPECT_EQ(run({other}, 1).count.simulated, 1u);
  EXPECT_EQ(run({longer, beside, later, learned, budget, estimates, bytes}, 2).count.from_cache, 7u);
}

TEST_F(RunnerTest, JobsShareTheDevice) {
  const Experiment alone{.model = "one", .policy = "ideal", .machine = "a6000", .iterations = 3};
  Experiment both = alone;
  both.beside = {{"one"}};
  const RunResult result = run({alone, both}, 1);
  const Outcome &one = result.outcomes.at(alone), &two = result.outcomes.at(both);
  ASSERT_TRUE(one.feasible && two.feasible);
  EXPECT_EQ(two.peak, one.peak * 2) << "they do the same at the same time";
  EXPECT_EQ(two.unlimited_peak, two.peak) << "ideal has no limit";
  EXPECT_GT(two.iteration_seconds, one.iteration_seconds);
  EXPECT_EQ(two.ideal_seconds, two.iteration_seconds);
}

TEST_F(RunnerTest, ALaterJobArrivesAfterSoManyIterations) {
  const Experiment experiment{.model = "one", .policy = "ideal", .iterations = 3, .beside = {{"two", 4}, {"one", 0}}};
  Nanos iteration;
  for (const Kernel& kernel : traces_.at("one").trace.kernels) iteration += kernel.gap + kernel.duration;
  EXPECT_EQ(arrivals_of(experiment, traces_),
            (std::vector<Nanos>{Nanos{}, Nanos{4 * iteration.value}, Nanos{4 * iteration.value}}));
}

// A is not used while B and C make the peak.
Trace with_an_absence() {
  Trace trace{.name = "absence", .source = "a test"};
  for (const std::uint64_t mib : {600, 200, 800})
    trace.tensors.push_back({.name = std::to_string(mib), .bytes = Bytes{mib << 20}});
  const auto add = [&](const std::vector<TensorId>& reads, const std::vector<TensorId>& writes,
                       std::vector<TensorId> frees) {
    Kernel kernel{.name = "kernel", .phase = Phase::forward, .duration = Nanos{1'000'000'000}};
    for (const TensorId id : reads) kernel.reads.push_back({.tensor = id, .end = trace[id].bytes});
    for (const TensorId id : writes) kernel.writes.push_back({.tensor = id, .end = trace[id].bytes});
    kernel.frees = std::move(frees);
    trace.kernels.push_back(std::move(kernel));
  };
  const TensorId a{0}, b{1}, c{2};
  add({}, {a}, {});
  add({}, {b}, {});
  add({b}, {c}, {b});
  add({c}, {}, {});  // A comes back meanwhile
  add({a, c}, {}, {a, c});
  return trace;
}

TEST_F(RunnerTest, ABudgetIsWhatTheOtherPolicyNeeds) {
  traces_.emplace("absence", LoadedTrace{.trace = with_an_absence(), .hash = "absence"});
  const Experiment needed{.model = "absence", .policy = "tensile:shrink=1", .machine = "a6000"};
  Experiment budget = needed;
  budget.policy = "lms";
  budget.budget_of = needed.policy;
  const RunResult result = run({needed, budget}, 1);
  const Outcome& most = result.outcomes.at(needed);
  EXPECT_LT(most.peak, most.unlimited_peak);
  EXPECT_LE(result.outcomes.at(budget).peak, most.peak) << "without a budget it would keep all there";
  EXPECT_GT(result.outcomes.at(budget).peak, Bytes{});
}

TEST_F(RunnerTest, OnlyEstimatesAreStretched) {
  Trace& trace = traces_.at("one").trace;
  for (Kernel& kernel : trace.kernels) kernel.gap = Nanos{};
  trace.estimated = "";
  const Experiment experiment{.model = "one", .policy = "ideal"};
  Experiment twice = experiment, larger = experiment;
  twice.estimates_percent = 200;
  larger.bytes_percent = 200;
  RunResult result = run({experiment, twice}, 1, "measured");
  EXPECT_EQ(result.outcomes.at(twice).ideal_seconds, result.outcomes.at(experiment).ideal_seconds);
  trace.estimated = "roofline, a100";
  result = run({experiment, twice, larger}, 1, "estimated");
  EXPECT_EQ(result.outcomes.at(larger).ideal_seconds, result.outcomes.at(experiment).ideal_seconds);
  EXPECT_GT(result.outcomes.at(larger).peak, result.outcomes.at(experiment).peak);
  EXPECT_NEAR(result.outcomes.at(twice).ideal_seconds, 2 * result.outcomes.at(experiment).ideal_seconds, 1e-6);
}

TEST_F(RunnerTest, ADamagedCacheIsMended) {
  const Experiment experiment{.model = "one", .policy = "uvm"};
  run({experiment}, 1);
  for (const auto& file : fs::directory_iterator(folder_)) std::ofstream(file.path()) << "{";
  EXPECT_EQ(run({experiment}, 1).count.simulated, 1u);
  EXPECT_EQ(run({experiment}, 1).count.from_cache, 1u);
}

TEST_F(RunnerTest, StopsAtAnError) {
  const std::vector<Experiment> wrong{{.model = "one", .policy = "uvm", .overrides = {"no.such=1"}}};
  EXPECT_FALSE(run_experiments(wrong, traces_, {.cache_folder = "", .program = ""}, [](std::size_t) {}));
}

}  // namespace
}  // namespace spillway
