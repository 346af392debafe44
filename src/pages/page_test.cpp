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

TEST(Page, ForeignNamesStayText) {
  const std::string name = "</script><script>alert(1)</script><!-- {{d3}} & \xff";
  const std::string page = page_of(named(name));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(data_in(page)["trace"].get<std::string>().substr(0, 40), name.substr(0, 40));
}

}  // namespace
}  // namespace spillway
