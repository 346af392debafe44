#include "reproduce/chart.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace spillway {
namespace {

// The numbers of an attribute, in the order of the text.
std::vector<double> numbers(const std::string& svg, const std::string& element, const std::string& attribute) {
  std::vector<double> found;
  const std::regex pattern("<" + element + "[^>]* " + attribute + "=\"([-0-9.]+)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), pattern), end; at != end; ++at)
    found.push_back(std::stod((*at)[1]));
  return found;
}

TEST(Ticks, AreRoundAndCoverTheValues) {
  EXPECT_EQ(ticks(0, 97, 4), (std::vector<double>{0, 50, 100}));
  EXPECT_EQ(ticks(0, 4, 4), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(ticks(-3, 3, 3), (std::vector<double>{-4, -2, 0, 2, 4}));
  EXPECT_GE(ticks(99.3, 99.9, 5).back(), 99.9 - 1e-9);
  EXPECT_LE(ticks(99.3, 99.9, 5).front(), 99.3 + 1e-9);
}

TEST(BarChart, BarsAreAsLongAsTheirValues) {
  const std::string svg = svg_of(BarChart{.title = "t",
                                          .unit = "%",
                                          .most = 100,
                                          .rows = {{.label = "A",
                                                    .ours = {{.name = "", .value = 80, .colour = 1}},
                                                    .published = {{.name = "", .value = 40, .colour = 1}},
                                                    .instead = ""}}});
  const auto widths = numbers(svg, "rect", "width");
  ASSERT_EQ(widths.size(), 2u);
  EXPECT_NEAR(widths[0], 2 * widths[1], 0.2);
  EXPECT_NE(svg.find("<title>A, here: 80.0 %</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>A, published: 40.0 %</title>"), std::string::npos) << svg;
}

TEST(BarChart, PartsOfABarLieOneAfterTheOther) {
  const std::string svg = svg_of(BarChart{
      .title = "t",
      .unit = "GB",
      .rows = {{.label = "A",
                .ours = {{.name = "SSD", .value = 30, .colour = 1}, {.name = "host", .value = 50, .colour = 2}},
                .published = {},
                .instead = ""}}});
  const auto places = numbers(svg, "rect", "x"), widths = numbers(svg, "rect", "width");
  ASSERT_EQ(places.size(), 2u);
  EXPECT_NEAR(places[1], places[0] + widths[0], 0.11);
  EXPECT_NE(svg.find(">80.0</text>"), std::string::npos) << "their sum is written";
}

TEST(BarChart, SaysWhyThereIsNoBar) {
  const std::string svg = svg_of(
      BarChart{.title = "t", .unit = "%", .rows = {{.label = "A", .ours = {}, .published = {}, .instead = "fails"}}});
  EXPECT_NE(svg.find(">fails</text>"), std::string::npos) << svg;
}

TEST(BarChart, WhatWasNotPublishedIsNotZero) {
  const std::string svg = svg_of(BarChart{
      .title = "t",
      .unit = "GB",
      .rows = {{.label = "A", .ours = {{.name = "", .value = 3, .colour = 0}}, .published = {}, .instead = ""}}});
  EXPECT_EQ(svg.find("0.00"), std::string::npos) << svg;
  EXPECT_NE(svg.find(R"(viewBox="0 0 400 55")"), std::string::npos) << "and takes no room: " << svg;
}

TEST(LineChart, PointsLieWhereTheirValuesAre) {
  const std::string svg = svg_of(LineChart{
      .title = "t",
      .x_title = "x",
      .unit = "%",
      .lines = {{.name = "A", .colour = 0, .points = {{.x = 0, .y = 0}, {.x = 5, .y = 50}, {.x = 10, .y = 100}}}}});
  const auto x = numbers(svg, "circle", "cx"), y = numbers(svg, "circle", "cy");
  ASSERT_EQ(x.size(), 3u);
  EXPECT_NEAR(x[1], (x[0] + x[2]) / 2, 0.11);
  EXPECT_NEAR(y[1], (y[0] + y[2]) / 2, 0.11);
  EXPECT_GT(y[0], y[2]);
}

TEST(LineChart, ScalesOfTimeCanBeLogarithmic) {
  const std::string svg = svg_of(LineChart{
      .title = "t",
      .x_title = "x",
      .unit = "%",
      .x_is_logarithmic = true,
      .lines = {
          {.name = "A", .colour = 0, .points = {{.x = 0.001, .y = 0}, {.x = 0.1, .y = 50}, {.x = 10, .y = 100}}}}});
  const auto x = numbers(svg, "circle", "cx");
  ASSERT_EQ(x.size(), 3u);
  EXPECT_NEAR(x[1], (x[0] + x[2]) / 2, 0.11);
  EXPECT_NE(svg.find(">0.1 s</text>"), std::string::npos) << svg;
}

TEST(LineChart, DotsLieByTheLogarithmOfBothValues) {
  const std::string svg =
      svg_of(LineChart{.title = "t",
                       .x_title = "x",
                       .unit = "size",
                       .x_is_logarithmic = true,
                       .y_is_logarithmic = true,
                       .lines = {{.name = "A",
                                  .has_marks = false,
                                  .is_joined = false,
                                  .points = {{.x = 0.001, .y = 1e3}, {.x = 0.1, .y = 1e6}, {.x = 10, .y = 1e9}}}}});
  const auto x = numbers(svg, "circle", "cx"), y = numbers(svg, "circle", "cy");
  ASSERT_EQ(x.size(), 3u);
  EXPECT_NEAR(x[1], (x[0] + x[2]) / 2, 0.11);
  EXPECT_NEAR(y[1], (y[0] + y[2]) / 2, 0.11);
  EXPECT_GT(y[0], y[2]);
  EXPECT_EQ(svg.find("<path"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">1 MB</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>100 ms, 1.00 MB</title>"), std::string::npos) << svg;
}

TEST(LineChart, LinesThatDifferLittleFillThePlane) {
  const std::string svg =
      svg_of(LineChart{.title = "t",
                       .x_title = "x",
                       .unit = "%",
                       .lines = {{.name = "A", .colour = 0, .points = {{.x = 0, .y = 100}, {.x = 10, .y = 99.5}}}}});
  const auto y = numbers(svg, "circle", "cy");
  ASSERT_EQ(y.size(), 2u);
  EXPECT_GT(y[1] - y[0], 50);
}

TEST(LineChart, OneOfNothingIsDrawnToo) {
  const std::string svg = svg_of(LineChart{.title = "t", .x_title = "x", .unit = "%", .lines = {}});
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
}

TEST(Escaped, NamesOfForeignFilesCannotBecomeMarkup) {
  EXPECT_EQ(escaped("<b a=\"1\">'&"), "&lt;b a=&quot;1&quot;&gt;&#39;&amp;");
  const std::string svg = svg_of(BarChart{
      .title = "<t>",
      .unit = "<u>",
      .rows = {{.label = "<l>", .ours = {{.name = "<p>", .value = 1, .colour = 0}}, .published = {}, .instead = ""}}});
  for (const std::string name : {"<t>", "<u>", "<l>", "<p>"}) EXPECT_EQ(svg.find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace spillway
