#include "reproduce/page_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reproduce/chart.h"
#include "reproduce/figure_cells.h"

namespace spillway {
namespace {

constexpr unsigned kColours = 8;

unsigned place_of(const std::vector<std::string>& list, const std::string& name) {
  return static_cast<unsigned>(std::ranges::find(list, name) - list.begin()) % kColours;
}

// Of a stacked bar: sky, green, vermilion, so that the third is what nobody wants.
unsigned colour_of_part(const std::vector<std::string>& parts, const std::string& part) {
  constexpr std::array<unsigned, 3> kParts{2, 4, 0};
  return kParts[place_of(parts, part) % kParts.size()];
}

std::vector<std::string> parts_of(const FigureResult& figure) {
  std::vector<std::string> parts;
  for (const SeriesResult& series : figure.series) add_once(parts, series.spec.part);
  return parts;
}

std::string panel(const std::string& caption, const std::string& svg) {
  return fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", escaped(caption), svg);
}

std::string legend(const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text = "<ul class=\"legend\">";
  for (const std::string& item : items) text += "<li>" + item + "</li>";
  return text + "</ul>\n";
}

BarRow& row_of(BarChart& chart, const std::string& label) {
  const auto row = std::ranges::find(chart.rows, label, &BarRow::label);
  if (row != chart.rows.end()) return *row;
  return chart.rows.emplace_back(BarRow{.label = label, .ours = {}, .published = {}, .instead = ""});
}

// Stacked bars have all parts, and colours tell them apart. Others have `parts`, and colours tell designs apart.
BarChart bars_of(const FigureResult& figure, const std::string& model, const std::vector<std::string>& designs,
                 const std::vector<std::string>& parts) {
  BarChart chart{.title = figure.spec.title + ", " + model, .unit = figure.spec.unit, .rows = {}};
  const bool is_stacked = figure.spec.chart == ChartKind::stacked_bars;
  for (const SeriesResult& series : figure.series) {
    if (series.spec.model != model || std::ranges::find(parts, series.spec.part) == parts.end()) continue;
    const unsigned colour =
        is_stacked ? colour_of_part(parts, series.spec.part) : place_of(designs, series.spec.policy);
    for (const PointResult& point : series.points) {
      BarRow* row =
          &row_of(chart, series.spec.policy + (series.points.size() > 1 ? ", " + point.label : std::string()));
      if (point.infeasible)
        row->instead = "fails";
      else if (!point.ours && row->instead.empty())
        row->instead = base_of(figure.spec).empty() ? "no end" : "none";
      if (point.ours) row->ours.push_back({.name = series.spec.part, .value = *point.ours, .colour = colour});
      if (point.published)
        row->published.push_back({.name = series.spec.part, .value = *point.published, .colour = colour});
    }
  }
  return chart;
}

double most_of(const FigureResult& figure) {
  double most = 0;
  for (const SeriesResult& series : figure.series)
    for (const PointResult& point : series.points)
      most = std::max({most, point.ours.value_or(0), point.published.value_or(0)});
  return most;
}

std::string bar_panels(const FigureResult& figure, const std::vector<std::string>& designs) {
  const std::vector<std::string> parts = parts_of(figure);
  const bool is_share = figure.spec.unit.starts_with('%');
  std::string text;
  for (const std::string& model : figure.models()) {
    const auto add = [&](const std::string& caption, const std::vector<std::string>& of_parts) {
      BarChart chart = bars_of(figure, model, designs, of_parts);
      if (is_share) chart.most = figure.spec.chart == ChartKind::stacked_bars ? 100 : most_of(figure);
      text += panel(caption, svg_of(chart));
    };
    if (figure.spec.chart == ChartKind::stacked_bars || parts.size() == 1)
      add(model, parts);
    else
      for (const std::string& part : parts) add(fmt::format("{}, {}", model, part), {part});
  }
  std::vector<std::string> items{sample_of_bar(6, false) + "here"};
  if (cells_of(figure).is_any_published) items.push_back(sample_of_bar(6, true) + "published");
  if (figure.spec.chart == ChartKind::stacked_bars)
    for (const std::string& part : parts)
      items.push_back(sample_of_bar(colour_of_part(parts, part), false) + escaped(part));
  return legend(items) + "<div class=\"panels\">\n" + text + "</div>\n";
}

void add_lines(LineChart& chart, const SeriesResult& series, const std::string& name, unsigned colour, bool is_joined) {
  if (!series.curve.empty())
    chart.lines.push_back({.name = name,
                           .colour = colour,
                           .is_published = false,
                           .has_marks = false,
                           .is_joined = is_joined,
                           .points = series.curve});
  if (series.curve.empty() && std::holds_alternative<TraceMeasure>(series.spec.measure)) return;
  ChartLine ours{.name = name, .colour = colour, .points = {}};
  ChartLine published{.name = name, .colour = colour, .is_published = true, .points = {}};
  for (const PointResult& point : series.points) {
    if (point.ours) ours.points.push_back({.x = point.x, .y = *point.ours});
    if (point.published) published.points.push_back({.x = point.x, .y = *point.published});
  }
  for (ChartLine* line : {&published, &ours})
    if (!line->points.empty()) chart.lines.push_back(std::move(*line));
}

LineChart empty_chart(const FigureResult& figure, const std::string& model) {
  return {.title = figure.spec.title + (model.empty() ? "" : ", " + model),
          .x_title = figure.spec.x_title,
          .unit = figure.spec.unit,
          .x_is_logarithmic = figure.spec.x_is_logarithmic,
          .y_is_logarithmic = figure.spec.y_is_logarithmic,
          .lines = {}};
}

std::string line_panels(const FigureResult& figure, const std::vector<std::string>& designs) {
  const std::vector<std::string> models = figure.models();
  const bool is_scatter = figure.spec.chart == ChartKind::scatter;
  const bool is_curve = is_scatter || figure.spec.chart == ChartKind::curves;
  std::vector<std::string> names;
  std::string text;
  const auto sample = [&](unsigned colour, bool is_published) {
    return sample_of_line(colour, is_published, !is_curve);
  };
  std::vector<std::string> items;
  const auto add = [&](LineChart& chart, const SeriesResult& series, const std::string& name, unsigned colour) {
    const std::size_t before = chart.lines.size();
    add_lines(chart, series, name, colour, !is_scatter);
    if (chart.lines.size() == before || std::ranges::find(names, name) != names.end()) return;
    names.push_back(name);
    if (!is_scatter) items.push_back(sample(colour, false) + escaped(name));
  };
  if (figure.spec.one_panel) {
    LineChart chart = empty_chart(figure, "");
    for (const SeriesResult& series : figure.series)
      add(chart, series, series.spec.model, place_of(models, series.spec.model) * 2 + 1);
    text = panel("", svg_of(chart));
  } else {
    for (const std::string& model : models) {
      LineChart chart = empty_chart(figure, model);
      for (const SeriesResult& series : figure.series)
        if (series.spec.model == model) {
          const bool is_of_part = is_curve || !series.spec.part.empty();
          const std::string& name = is_of_part ? series.spec.part : series.spec.policy;
          add(chart, series, name,
              is_of_part ? (place_of(parts_of(figure), name) * 3 + 2) % kColours : place_of(designs, name));
        }
      text += panel(model, svg_of(chart));
    }
  }
  if (!is_curve && cells_of(figure).is_any_published) items.push_back(sample(6, true) + "published");
  return legend(items) + fmt::format("<div class=\"panels{}\">\n{}</div>\n", figure.spec.one_panel ? " one" : "", text);
}

}  // namespace

std::string panels_of(const FigureResult& figure, const std::vector<std::string>& designs) {
  const bool is_bars = figure.spec.chart == ChartKind::bars || figure.spec.chart == ChartKind::stacked_bars;
  return is_bars ? bar_panels(figure, designs) : line_panels(figure, designs);
}

std::string values_of(const FigureResult& figure) {
  const FigureCells cells = cells_of(figure);
  std::string text = fmt::format("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>{}</th><th></th>",
                                 escaped(figure.spec.unit));
  for (const std::string& column : cells.columns) text += "<th>" + escaped(column) + "</th>";
  text += "</tr></thead><tbody>\n";
  for (const std::string& row : cells.rows) {
    std::string ours = "<tr><td>" + escaped(row) + "</td><td class=\"left\">here</td>";
    std::string published = "<tr><td></td><td class=\"left\">published</td>";
    for (const std::string& column : cells.columns) {
      const FigureCells::Cell cell = cells.at(row, column);
      ours += "<td>" + escaped(cell.ours) + "</td>";
      published += "<td>" + escaped(cell.published) + "</td>";
    }
    text += ours + "</tr>\n" + (cells.is_any_published ? published + "</tr>\n" : "");
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace spillway
