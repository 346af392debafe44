#include "reproduce/runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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
