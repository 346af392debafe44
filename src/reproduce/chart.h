#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reproduce/measures.h"

namespace spillway {

// Static charts as SVG, without scripts. Hover texts are <title> elements. Colours are classes that the page defines:
// c0 to c7. What is ours is filled, what was published is hollow or dashed, so colour alone says nothing.

struct BarPart {
  std::string name;  // empty: the bar has one part
  double value = 0;
  unsigned colour = 0;
};

// One row: our bar above the published one, each of one part or stacked.
struct BarRow {
  std::string label;
  std::vector<BarPart> ours, published;
  std::string instead;  // of our value, if there is none: "fails"
};

struct BarChart {
  std::string title;  // what a screen reader says
  std::string unit;
  double most = 0;  // the axis's end; at least the longest bar
  std::vector<BarRow> rows;
};
std::string svg_of(const BarChart& chart);

struct ChartLine {
  std::string name;
  unsigned colour = 0;
  bool is_published = false;
  bool has_marks = true;  // at its points
  bool is_joined = true;  // else there are small dots alone, of seconds and bytes
  std::vector<CurvePoint> points;
};

struct LineChart {
  std::string title, x_title, unit;
  bool x_is_logarithmic = false;  // then x is in seconds
  bool y_is_logarithmic = false;  // then y is in bytes
  std::vector<ChartLine> lines;
};
std::string svg_of(const LineChart& chart);

// A legend's sample: a filled or hollow square, or a line with its mark.
std::string sample_of_bar(unsigned colour, bool is_published);
std::string sample_of_line(unsigned colour, bool is_published, bool has_marks);

// Text between tags, or in quotes.
std::string escaped(std::string_view text);

// Round numbers from `least` to `most`, at least two: 0, 20, 40.
std::vector<double> ticks(double least, double most, int about);

}  // namespace spillway
