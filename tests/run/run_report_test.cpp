#include <nlohmann/json.hpp>

#include "program.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

struct RunReported : Program {
  Json report() const { return Json::parse(text_of(folder / "report.json"), nullptr, false); }
  const std::vector<std::string> to_json{"--json", "report.json"};
};

TEST_F(RunReported, WhatTheHookCountedEvenWhenTheScriptIsKilled) {
  const Ended ended = run(to_json, {FAKE_HOOK, "claim", "count", "die"});
  EXPECT_EQ(ended.status, 128 + 9);
  const Json object = report();
  EXPECT_EQ(object["exit_status"], 137);
  EXPECT_EQ(object["policy"], "auto");
  EXPECT_EQ(object["device_budget_bytes"], 1 << 30);
  EXPECT_EQ(object["peak_ssd_bytes"], 8192);
  EXPECT_EQ(object["unmanaged_peak_bytes"], 77);
  EXPECT_EQ(object["faults"], 7);
  EXPECT_EQ(object["iterations"].size(), 2u);
  EXPECT_TRUE(ended.err.contains("2: first 2.000 s (4 faults)")) << ended.err;
}

TEST_F(RunReported, ADiskThatDoesNotAnswerEndsTheRun) {
  const Ended ended = run({"--json", "report.json", "--io-timeout", "1s"}, {FAKE_HOOK, "claim", "stuck"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(ended.err.contains("/var/tmp has not answered a write of a block")) << ended.err;
  EXPECT_EQ(report()["exit_status"], 1);
  EXPECT_EQ(ended.err,
            "spillway: error: " + report()["error"].get<std::string>() + ended.err.substr(ended.err.find('\n')));
}

TEST_F(RunReported, ARelativeNameMeansWhereTheRunWasStarted) {
  run(to_json, {"sh", "-c", "cd / && exec \"$0\" claim", FAKE_HOOK});
  EXPECT_EQ(report()["made_tensors"], true);
}

TEST_F(RunReported, AScriptThatClosesAllDescriptorsIsStillSeen) {
  run(to_json, {"sh", "-c", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec \"$0\" claim count", FAKE_HOOK});
  EXPECT_EQ(report()["faults"], 7);
}

TEST_F(RunReported, TheFirstProcessOwnsTheBudgetAndTheOthersAreNamed) {
  const Ended ended = run(to_json, {"sh", "-c", "\"$0\" claim; setsid \"$0\" claim; \"$0\" claim", FAKE_HOOK});
  const Json object = report();
  EXPECT_EQ(object["unmanaged_process_count"], 2);
  ASSERT_EQ(object["unmanaged_processes"].size(), 2u);
  EXPECT_EQ(object["unmanaged_processes"][0]["name"], FAKE_HOOK " claim");
  EXPECT_TRUE(ended.err.contains("2 processes besides the first")) << ended.err;
}

TEST_F(RunReported, WhatTheHookCouldNotDoIsAnError) {
  const Ended ended = run(to_json, {FAKE_HOOK, "claim", "error", "the disk is gone"});
  EXPECT_EQ(ended.status, 0) << "the script's own";
  EXPECT_TRUE(ended.err.contains("spillway: error: the disk is gone\n")) << ended.err;
  EXPECT_EQ(report()["error"], "the disk is gone");
}

TEST_F(RunReported, ARecordedTraceIsWhereItWasAskedFor) {
  const Ended ended = run({"--record", "new"}, {"sh", "-c", "cd /; exec \"$0\" claim record", FAKE_HOOK});
  EXPECT_EQ(text_of(folder / "new/model.trace"), "{}\n");
  EXPECT_TRUE(ended.err.contains("new/model.trace")) << ended.err;
}

TEST_F(RunReported, ItsReportMayLieBehindLinksToAFileOrToItsOutput) {
  const auto link = [&](const char* name, const char* to) { std::filesystem::create_symlink(to, folder / name); };
  std::filesystem::create_directories(folder / "real/sub");
  link("to_file.json", "real/far.json");
  link("sub", "real/sub");
  link("real/sub/to_output.json", "../output");  // beside real/sub, not beside the link to it
  link("real/output", "/dev/stdout");
  EXPECT_EQ(run({"--json", "to_file.json"}, {FAKE_HOOK, "claim", "count"}).status, 0);
  EXPECT_EQ(Json::parse(text_of(folder / "real/far.json"), nullptr, false)["faults"], 7);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "to_file.json"));
  EXPECT_EQ(
      Json::parse(run({"--json", "sub/to_output.json"}, {FAKE_HOOK, "claim", "count"}).out, nullptr, false)["faults"],
      7);
}

TEST_F(RunReported, TheReportMayLieInTheFolderThatTheRecordMakes) {
  const Ended ended = run({"--record", "new", "--json", "new/report.json"}, {FAKE_HOOK, "claim", "count"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(Json::parse(text_of(folder / "new/report.json"), nullptr, false)["faults"], 7);
}

TEST_F(RunReported, AMissingFolderAboveTheTracesIsAnErrorAndNotMade) {
  const Ended ended = run({"--record", "other/folder"}, {FAKE_HOOK, "claim"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(ended.err.contains("mkdir -p")) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

}  // namespace
}  // namespace spillway
