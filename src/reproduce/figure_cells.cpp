#include "reproduce/figure_cells.h"

#include <algorithm>

#include "reproduce/numbers.h"

namespace spillway {
namespace {

std::string row_of(const SeriesSpec& spec, const PointResult& point) {
  std::string row = spec.model;
  if (!spec.policy.empty() && !spec.part.empty()) row += ", " + spec.part;
  if (!point.label.empty()) row += ", " + point.label;
  return row;
}

FigureCells::Cell cell_of(const PointResult& point) {
  FigureCells::Cell cell;
  if (point.ours) cell.ours = number_text(*point.ours);
  if (point.infeasible) cell.ours = "fails";
  if (point.published) cell.published = number_text(*point.published);
  return cell;
}

}  // namespace

FigureCells::Cell FigureCells::at(const std::string& row, const std::string& column) const {
  const auto found = cells.find({row, column});
  return found == cells.end() ? Cell{} : found->second;
}

FigureCells cells_of(const FigureResult& figure) {
  FigureCells cells;
  for (const SeriesResult& series : figure.series)
    for (const PointResult& point : series.points) {
      const std::string column = series.spec.policy.empty() ? series.spec.part : series.spec.policy;
      const std::string row = row_of(series.spec, point);
      add_once(cells.columns, column);
      add_once(cells.rows, row);
      cells.cells[{row, column}] = cell_of(point);
      cells.is_any_published = cells.is_any_published || point.published;
    }
  return cells;
}

std::string heading_of(const std::string& figure) {
  if (figure.starts_with('T')) return "Table " + figure.substr(1);
  const bool is_section = figure.find('.') != std::string::npos || figure.starts_with('I');  // "7.7", "IV-A"
  return (is_section ? "Section " : "Figure ") + figure;
}

void add_once(std::vector<std::string>& list, const std::string& name) {
  if (std::ranges::find(list, name) == list.end()) list.push_back(name);
}

}  // namespace spillway
