#include "pages/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace spillway {
namespace {

RunTimeline named(const std::string& name) {
  RunTimeline timeline{.trace_name = name, .iteration = Nanos{10}, .ideal = Nanos{10}};
  timeline.tensors = {{.name = name, .bytes = 2_MiB, .at_start = {.device = 2_MiB}}};
  timeline.kernels = {{.name = name, .start = {}, .end = Nanos{10}, .reads = {{0}}}};
  timeline.levels = {{{}, {.device = 2_MiB}}};
  return timeline;
}

// Of what the page holds between its data element's tags.
nlohmann::json data_in(const std::string& page) {
  const std::string open = "id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Page, HoldsItsDataAndNeedsNoNetwork) {
  const std::string page = page_of(named("bert"));
  const nlohmann::json data = data_in(page);
  EXPECT_EQ(data["kernels"]["name"], (nlohmann::json{"bert"}));
  EXPECT_EQ(data["tensors"]["at_start"][0], (nlohmann::json{0, 2 << 20, 0, 0}));
  EXPECT_EQ(data["capacity"], (nlohmann::json{nullptr, nullptr, nullptr}));
  for (const char* unwanted :
       {"src=\"http", "href=\"http", "@import", "{{title}}", "{{style}}", "{{d3}}", "{{script}}"})
    EXPECT_EQ(page.find(unwanted), std::string::npos) << unwanted;
}

TEST(Page, ComparesPoliciesAndNamesThoseThatCannotRun) {
  const std::string page = comparison_page_of({named("bert"), named("bert")}, {"g10-gds"});
  const nlohmann::json data = data_in(page);
  EXPECT_EQ(data["trace"], "bert");
  EXPECT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][1]["levels"]["device"], (nlohmann::json{2 << 20}));
  EXPECT_EQ(data["infeasible"], (nlohmann::json{"g10-gds"}));
}

TEST(Page, OfAReportNeedsWhatItDraws) {
  const std::string report =
      R"({"iteration_count":1,"exit_status":0,"wall_seconds":1.0,"stall_seconds":0,"peak_device_bytes":0,)"
      R"("peak_host_bytes":0,"peak_ssd_bytes":0,"device_budget_bytes":0,"iterations":[{"seconds":1.0,"faults":0,)"
      R"("waited_seconds":0,"moved_in_bytes":0,"moved_out_bytes":0,"operators":1,"planned_operators":0}],"phases":[],)"
      R"("most_moved_tensors":[],"predictions":[],"notices":["</script>"],"moved_bytes":{},"plan":null,"gpu":null,)"
      R"("advice":null,"no_plan_because":null,"error":null,"device":"cpu","policy":"auto","unlimited":true})";
  const auto page = report_page_of(report, "r.json");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(data_in(*page)["notices"][0], "</script>");
  const auto why_none = [&](const std::string& what, const std::string& instead) {
    std::string changed = report;
    changed.replace(changed.find(what), what.size(), instead);
    const auto none = report_page_of(changed, "r.json");
    return none ? std::string("a page") : none.error().message;
  };
  EXPECT_TRUE(why_none("\"faults\":0", "\"faults\":null").contains("an iteration without a number 'faults'"));
  EXPECT_TRUE(why_none("\"phases\"", "\"faces\"").contains("has no list 'phases'"));
  EXPECT_TRUE(why_none("}]", "]").starts_with("r.json: the report is no JSON"));
  EXPECT_TRUE(why_none("\"</script>\"", std::string(100'000, '[')).contains("is no JSON object"));
}

TEST(Page, ForeignNamesStayText) {
  const std::string name = "</script><script>alert(1)</script><!-- {{d3}} & \xff";
  const std::string page = page_of(named(name));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(data_in(page)["trace"].get<std::string>().substr(0, 40), name.substr(0, 40));
}

}  // namespace
}  // namespace spillway
