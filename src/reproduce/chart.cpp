#include "reproduce/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "reproduce/numbers.h"

namespace spillway {
namespace {

std::string opening(double width, double height, std::string_view title) {
  return fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">)", width, height, escaped(title));
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view kind, std::string_view text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)", x, y, anchor, kind,
                     escaped(text));
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x1, y1, x2, y2, kind);
}

// Bars lie, so that names of any length can be read.
constexpr double kWidth = 400, kLabels = 112, kValues = 56;
constexpr double kPlot = kWidth - kLabels - kValues;
constexpr double kBar = 11, kBetween = 8, kAxis = 34;
constexpr double kWideEnough = 26;  // for a number within a part of a bar

std::string bar(const BarRow& row, const std::vector<BarPart>& parts, double y, double scale, std::string_view unit,
                bool is_published) {
  const std::string_view whose = is_published ? "published" : "here";
  std::string svg;
  double x = kLabels, sum = 0;
  for (const BarPart& part : parts) {
    const double width = std::max(0.0, part.value * scale);
    sum += part.value;
    svg += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="c{} {}"><title>{}, {}{}: {}</title></rect>)",
        x, y, width, kBar, part.colour, is_published ? "hollow" : "filled", escaped(row.label), whose,
        part.name.empty() ? "" : ", " + escaped(part.name), escaped(number_text(part.value, unit)));
    if (parts.size() > 1 && width >= kWideEnough)
      svg += text_at(x + width / 2, y + kBar - 2.5, "middle", is_published ? "within hollow" : "within",
                     fmt::format("{:.0f}", part.value));
    x += width;
  }
  // What the parts of one bar add up to says nothing where they are percent of a whole.
  if (parts.size() == 1 || (!parts.empty() && unit.find('%') == std::string_view::npos))
    svg += text_at(x + 4, y + kBar - 2, "start", is_published ? "value hollow" : "value", number_text(sum));
  return svg;
}

double longest_of(const BarChart& chart) {
  double most = chart.most;
  for (const BarRow& row : chart.rows)
    for (const auto* parts : {&row.ours, &row.published}) {
      double sum = 0;
      for (const BarPart& part : *parts) sum += part.value;
      if (std::isfinite(sum)) most = std::max(most, sum);
    }
  return most > 0 ? most : 1;
}

std::string tick_text(double value) {
  if (value >= 10000 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

// A mark's shape tells lines apart that look alike in grey.
std::string mark(double x, double y, unsigned colour, bool is_published, std::string_view title) {
  const double r = 3.6;
  const std::string attributes = fmt::format(R"(class="c{} {}")", colour, is_published ? "hollow" : "filled");
  const std::string inside = title.empty() ? "" : fmt::format("<title>{}</title>", escaped(title));
  switch (colour % 4) {
    case 0:
      return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" {}>{}</circle>)", x, y, r, attributes, inside);
    case 1:
      return fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{}" height="{}" {}>{}</rect>)", x - r, y - r, 2 * r,
                         2 * r, attributes, inside);
    case 2:
      return fmt::format(R"(<path d="M{:.1f} {:.1f}l{} {}h{}z" {}>{}</path>)", x, y - r - 1, r + 1, 2 * r + 1,
                         -2 * (r + 1), attributes, inside);
    default:
      return fmt::format(R"(<path d="M{:.1f} {:.1f}l{} {}l{} {}l{} {}z" {}>{}</path>)", x, y - r - 1, r + 1, r + 1,
                         -r - 1, r + 1, -r - 1, -r - 1, attributes, inside);
  }
}

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

constexpr double kShortest = 1e-6;  // seconds, where time is logarithmic
constexpr double kSmallest = 1;     // byte, where sizes are

double logarithm(double value, double least) { return std::log10(std::max(value, least)); }

// Where a chart's values lie on the paper.
class Plane {
 public:
  static constexpr double kLeft = 48, kRight = 12, kTop = 8, kBottom = 42, kHeight = 270;

  explicit Plane(const LineChart& chart)
      : x_is_logarithmic_(chart.x_is_logarithmic), y_is_logarithmic_(chart.y_is_logarithmic) {
    for (const ChartLine& line : chart.lines)
      for (const CurvePoint& point : line.points) {
        x_.add(along(point.x));
        y_.add(up(point.y));
      }
    if (x_.least > x_.most) x_ = {.least = 0, .most = 1}, y_ = {.least = 0, .most = 1};
    if (x_.least == x_.most) x_.most += 1;
    if (y_is_logarithmic_) {
      y_ = {.least = std::floor(y_.least), .most = std::max(std::ceil(y_.most), std::floor(y_.least) + 1)};
      return;
    }
    // Lines that differ little would be one at the top of a scale from zero.
    const double spread = y_.most - y_.least;
    if (spread == 0 || spread > 0.1 * y_.most) y_.least = std::min(0.0, y_.least);
    if (y_.least == y_.most) y_.most += 1;
    y_ticks_ = ticks(y_.least, y_.most, 5);
    y_ = {.least = y_ticks_.front(), .most = y_ticks_.back()};
  }

  double x(double value) const {
    return kLeft + (along(value) - x_.least) / (x_.most - x_.least) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kTop + (y_.most - up(value)) / (y_.most - y_.least) * (kHeight - kTop - kBottom);
  }

  // Labels of the x axis by place.
  std::vector<std::pair<double, std::string>> x_labels() const {
    std::vector<std::pair<double, std::string>> labels;
    if (!x_is_logarithmic_) {
      for (const double tick : ticks(x_.least, x_.most, 6))
        if (tick >= x_.least && tick <= x_.most) labels.emplace_back(x(tick), tick_text(tick));
      return labels;
    }
    constexpr std::array kNames{"1 µs", "10 µs", "0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s", "1000 s"};
    int power = -6;
    for (const auto& name : kNames) {
      if (power >= x_.least && power <= x_.most) labels.emplace_back(x(std::pow(10, power)), name);
      ++power;
    }
    return labels;
  }

  // The same of the y axis.
  std::vector<std::pair<double, std::string>> y_labels() const {
    std::vector<std::pair<double, std::string>> labels;
    for (const double tick : y_ticks_) labels.emplace_back(y(tick), tick_text(tick));
    if (!y_is_logarithmic_) return labels;
    constexpr std::array kNames{"1 B",   "10 B",   "100 B", "1 KB",  "10 KB",  "100 KB", "1 MB",
                                "10 MB", "100 MB", "1 GB",  "10 GB", "100 GB", "1 TB"};
    int power = 0;
    for (const auto& name : kNames) {
      if (power >= y_.least && power <= y_.most) labels.emplace_back(y(std::pow(10, power)), name);
      ++power;
    }
    return labels;
  }

 private:
  double along(double x) const { return x_is_logarithmic_ ? logarithm(x, kShortest) : x; }
  double up(double y) const { return y_is_logarithmic_ ? logarithm(y, kSmallest) : y; }

  bool x_is_logarithmic_, y_is_logarithmic_;
  Range x_, y_;
  std::vector<double> y_ticks_;
};

std::string size_text(double bytes) {
  constexpr std::array kUnits{"B", "KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return number_text(bytes, kUnits[unit]);
}

std::string dots(const ChartLine& line, const Plane& plane) {
  std::string svg;
  for (const CurvePoint& point : line.points)
    svg += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="1.7" class="c{} filled"><title>{}, {}</title></circle>)",
                       plane.x(point.x), plane.y(point.y), line.colour,
                       to_text(Nanos{static_cast<std::uint64_t>(1e9 * point.x)}), size_text(point.y));
  return svg;
}

std::string drawn(const ChartLine& line, const Plane& plane, const LineChart& chart) {
  if (!line.is_joined) return dots(line, plane);
  std::string path;
  for (const CurvePoint& point : line.points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", plane.x(point.x), plane.y(point.y));
  const std::string name = line.name + (line.is_published ? ", published" : ", here");
  std::string svg = fmt::format(R"(<path d="{}" class="line c{}{}"><title>{}</title></path>)", path, line.colour,
                                line.is_published ? " dashed" : "", escaped(name));
  if (line.has_marks)
    for (const CurvePoint& point : line.points)
      svg += mark(plane.x(point.x), plane.y(point.y), line.colour, line.is_published,
                  fmt::format("{}, at {}: {}", name, tick_text(point.x), number_text(point.y, chart.unit)));
  return svg;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  return safe;
}

std::vector<double> ticks(double least, double most, int about) {
  const double rough = (most - least) / about;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power * 1.0001) {
      step = factor * power;
      break;
    }
  std::vector<double> values;
  const double first = std::floor(least / step + 1e-9), last = std::ceil(most / step - 1e-9);
  for (double n = first; n <= last; ++n) values.push_back(n * step);
  return values;
}

std::string svg_of(const BarChart& chart) {
  const std::vector<double> marks = ticks(0, longest_of(chart), 4);
  const double scale = kPlot / marks.back();
  const bool are_pairs = std::ranges::any_of(chart.rows, [](const BarRow& row) { return !row.published.empty(); });
  const double height = are_pairs ? 2 * kBar : kBar;  // of a row's bars
  const double bottom = static_cast<double>(chart.rows.size()) * (height + kBetween) + 2;
  std::string svg = opening(kWidth, bottom + kAxis, chart.title);
  for (const double at : marks) {
    svg += line_at(kLabels + at * scale, 0, kLabels + at * scale, bottom, "grid");
    svg += text_at(kLabels + at * scale, bottom + 13, "middle", "tick", tick_text(at));
  }
  svg += text_at(kLabels + kPlot / 2, bottom + 28, "middle", "tick", chart.unit);
  double y = 4;
  for (const BarRow& row : chart.rows) {
    svg += text_at(kLabels - 6, y + height / 2 + 3, "end", "label", row.label);
    if (row.ours.empty() && !row.instead.empty())
      svg += text_at(kLabels + 4, y + kBar - 2, "start", "value", row.instead);
    svg += bar(row, row.ours, y, scale, chart.unit, false);
    svg += bar(row, row.published, y + kBar + 1, scale, chart.unit, true);
    y += height + kBetween;
  }
  return svg + line_at(kLabels, 0, kLabels, bottom, "axis") + "</svg>";
}

std::string svg_of(const LineChart& chart) {
  const Plane plane(chart);
  const double right = kWidth - Plane::kRight, bottom = Plane::kHeight - Plane::kBottom;
  std::string svg = opening(kWidth, Plane::kHeight, chart.title);
  for (const auto& [y, label] : plane.y_labels()) {
    svg += line_at(Plane::kLeft, y, right, y, "grid");
    svg += text_at(Plane::kLeft - 6, y + 4, "end", "tick", label);
  }
  for (const auto& [x, label] : plane.x_labels()) {
    svg += line_at(x, bottom, x, bottom + 4, "axis");
    svg += text_at(x, bottom + 16, "middle", "tick", label);
  }
  svg += line_at(Plane::kLeft, bottom, right, bottom, "axis");
  svg += text_at((Plane::kLeft + right) / 2, Plane::kHeight - 8, "middle", "tick", chart.x_title);
  if (!chart.y_is_logarithmic)  // Labels that have units need no title, and leave no room for it.
    svg += fmt::format(
        R"svg(<text transform="translate(11 {:.0f}) rotate(-90)" text-anchor="middle" class="tick">{}</text>)svg",
        bottom / 2, escaped(chart.unit));
  for (const ChartLine& line : chart.lines) svg += drawn(line, plane, chart);
  return svg + "</svg>";
}

std::string sample_of_bar(unsigned colour, bool is_published) {
  return fmt::format(R"(<svg class="sample" viewBox="0 0 14 12" aria-hidden="true"><rect x="1" y="1" width="12" )"
                     R"(height="10" class="c{} {}"/></svg>)",
                     colour, is_published ? "hollow" : "filled");
}

std::string sample_of_line(unsigned colour, bool is_published, bool has_marks) {
  return fmt::format(R"(<svg class="sample wide" viewBox="0 0 30 12" aria-hidden="true"><path d="M1 6H29" )"
                     R"(class="line c{}{}"/>{}</svg>)",
                     colour, is_published ? " dashed" : "", has_marks ? mark(15, 6, colour, is_published, "") : "");
}

}  // namespace spillway
