#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reproduce/figures.h"

namespace spillway {

// A figure's values as a table: columns are designs (or, where a figure has none, what is measured), rows are models
// and what else tells values apart.
struct FigureCells {
  struct Cell {
    std::string ours = "–", published = "–";
  };
  std::vector<std::string> columns, rows;
  std::map<std::pair<std::string, std::string>, Cell> cells;  // by row and column
  bool is_any_published = false;

  Cell at(const std::string& row, const std::string& column) const;
};
FigureCells cells_of(const FigureResult& figure);

// "Figure 11", or "Section 7.7a" of what no figure shows, or "Table 5" of "T5".
std::string heading_of(const std::string& figure);

// Adds what the list does not have yet.
void add_once(std::vector<std::string>& list, const std::string& name);

}  // namespace spillway
