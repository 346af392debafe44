#include <fstream>
#include <nlohmann/json.hpp>

#include "journal/random_run.h"
#include "journal/rewritten.h"
#include "policies/deepum.h"
#include "program.h"

namespace spillway {
namespace {

struct ReplayCommand : Program {
  void SetUp() override {
    Program::SetUp();
    auto file = JournalFile::start({.path = (folder / "run.journal").string()});
    ASSERT_TRUE(file);
    JournalledExecutor executor(**file, {}, {make_deepum, kBlockBytes * 16});
    executor.play(RandomRun(1), 500);
  }
  void rewrite(const std::string& journal) const { std::ofstream(folder / "run.journal", std::ios::binary) << journal; }
  std::string journal() const { return text_of(folder / "run.journal"); }
};

TEST_F(ReplayCommand, SaysThatAllIsEqualAndWhereTheRunStood) {
  const Ended ended = spillway({"replay", "."});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_TRUE(ended.out.contains("500 events")) << ended.out;
  EXPECT_TRUE(ended.out.contains("all equal")) << ended.out;
  EXPECT_TRUE(ended.out.contains(" of 32 MiB (peak 32 MiB)")) << ended.out;
  EXPECT_TRUE(ended.out.contains("event 500 (")) << ended.out;
  const auto report = nlohmann::json::parse(spillway({"replay", "run.journal", "--json"}).out);
  EXPECT_EQ(report.at("equal"), true);
  EXPECT_EQ(report.at("events"), 500);
  EXPECT_EQ(report.at("looks_ahead"), "deepum");
  EXPECT_EQ(report.at("capacity_bytes").at("device"), 32 << 20);
  EXPECT_EQ(report.at("difference"), nullptr);
}

TEST_F(ReplayCommand, ShowSaysTheSame) {
  const Ended shown = spillway({"show", "run.journal"}), replayed = spillway({"replay", "run.journal"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_FALSE(shown.out.empty());
  EXPECT_EQ(shown.out, replayed.out);
}

TEST_F(ReplayCommand, StopsAtTheFirstCommandThatDiffersAndShowsBoth) {
  std::uint64_t event = 0;
  bool changed = false;
  rewrite(rewritten(journal(), [&](Record& record) {
    event += !changed && std::holds_alternative<Told>(record);
    auto* asked = std::get_if<Asked>(&record);
    if (changed || event < 300 || asked == nullptr || asked->commands.empty()) return;
    asked->commands.back() = Cancel{{12'345}};
    changed = true;
  }));
  const std::string place = "event " + std::to_string(event) + " (";
  const Ended ended = spillway({"replay", ".", "--before", "3"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(ended.err.contains(place)) << ended.err;
  EXPECT_TRUE(ended.err.contains("was 'cancel move 12345' in the run and is '")) << ended.err;
  EXPECT_TRUE(ended.out.contains("  > cancel move 12345\n")) << ended.out;
  const auto report = nlohmann::json::parse(spillway({"replay", ".", "--json", "--before", "3"}).out);
  EXPECT_EQ(report.at("end"), "difference");
  const auto& difference = report.at("difference");
  EXPECT_EQ(difference.at("at").at("event"), event);
  EXPECT_EQ(difference.at("before").size(), 3u);
  EXPECT_EQ(difference.at("recorded").at(difference.at("first_command").get<std::size_t>()), "cancel move 12345");
  EXPECT_NE(difference.at("recorded"), difference.at("replayed"));
}

TEST_F(ReplayCommand, WhatIsNoJournalIsAnErrorThatNamesTheFile) {
  const std::string missing = spillway({"replay", "none"}).err;
  EXPECT_TRUE(missing.contains("cannot read none: No such file")) << missing;
  EXPECT_TRUE(missing.contains("`spillway run --record DIR` writes DIR/run.journal")) << missing;
  rewrite("{}");
  const Ended ended = spillway({"replay", "."});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(ended.err.contains("run.journal is no journal")) << ended.err;
  EXPECT_EQ(ended.out, "");
}

}  // namespace
}  // namespace spillway
