#include "reproduce/commands.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

TracesAtHand at_hand() {
  return {.folders = {"my traces"}, .traces = {}, .paths = {{"M", "/tmp"}, {"N", "my traces/N.trace"}}, .absent = {}};
}
Paper some_paper() { return {.name = "p", .title = "P", .source = "", .models = {}, .figures = {}, .claims = {}}; }

TEST(CommandFor, OneExperimentIsSimulated) {
  const std::vector<Experiment> one{
      {.model = "N", .policy = "g10", .overrides = {"host.memory=0"}, .noise_percent = 20}};
  EXPECT_EQ(command_for(one, at_hand(), some_paper(), "1"),
            "spillway simulate 'my traces/N.trace' --policy g10 --machine a100 --set host.memory=0 --noise 20%");
}

TEST(CommandFor, PoliciesAreComparedAndTheArtifactsTracesImportedFirst) {
  const std::vector<Experiment> two{{.model = "M", .policy = "uvm:pool=1"}, {.model = "M", .policy = "g10"}};
  EXPECT_EQ(command_for(two, at_hand(), some_paper(), "1"),
            "spillway import g10 /tmp -o M.trace\nspillway compare M.trace --policies uvm:pool=1,g10 --machine a100");
}

TEST(CommandFor, ManyMachinesAreTheReproductionItself) {
  std::vector<Experiment> many;
  for (const char* memory : {"1", "2", "3", "4", "5"})
    many.push_back({.model = "M", .policy = "g10", .overrides = {std::string("host.memory=") + memory + "GiB"}});
  EXPECT_EQ(command_for(many, at_hand(), some_paper(), "16"), "spillway reproduce p --figure 16 --traces 'my traces'");
}

TEST(CommandFor, ManyModelsAreTheReproductionItself) {
  std::vector<Experiment> many;
  for (const char* model : {"1", "2", "3", "4", "5", "6"}) many.push_back({.model = model, .policy = "g10"});
  EXPECT_EQ(command_for(many, at_hand(), some_paper(), "16"), "spillway reproduce p --figure 16 --traces 'my traces'");
}

TEST(CommandFor, JobsAndBudgetsAreTheReproductionItself) {
  Experiment jobs{.model = "M", .policy = "g10"}, budget = jobs, learned = jobs, stretched = jobs;
  jobs.iterations = 50;
  budget.budget_of = "tensile";
  learned.learned_from = {"N"};
  stretched.estimates_percent = 300;
  for (const Experiment& one : {jobs, budget, learned, stretched})
    EXPECT_EQ(command_for(std::vector{one}, at_hand(), some_paper(), "16"),
              "spillway reproduce p --figure 16 --traces 'my traces'");
}

TEST(CommandFor, WithoutExperimentsTracesAreShown) {
  EXPECT_EQ(command_for({}, at_hand(), some_paper(), "2"),
            "spillway import g10 /tmp -o M.trace\nspillway show M.trace\nspillway show 'my traces/N.trace'");
}

TEST(CommandsFor, BeginWithWhatPrintsTheValues) {
  const std::vector<Experiment> one{{.model = "N", .policy = "g10"}};
  EXPECT_EQ(commands_for(one, at_hand(), some_paper(), "T3"),
            "spillway reproduce p --table 3 --traces 'my traces'\n# The same, one by one:\n"
            "spillway simulate 'my traces/N.trace' --policy g10 --machine a100");
  const std::vector<Experiment> jobs{{.model = "N", .policy = "g10", .iterations = 50}};
  EXPECT_EQ(commands_for(jobs, at_hand(), some_paper(), "7.7a"),
            "spillway reproduce p --figure 7.7a --traces 'my traces'");
}

TEST(MachinesText, NamesEachOnce) {
  const std::vector<Experiment> three{{.model = "M", .policy = "uvm"},
                                      {.model = "M", .policy = "g10"},
                                      {.model = "M", .policy = "g10", .overrides = {"ssd.count=2"}}};
  EXPECT_EQ(machines_text(three), "a100; a100 with ssd.count=2");
}

}  // namespace
}  // namespace spillway
