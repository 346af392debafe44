#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// How many columns of a terminal the text takes: UTF-8 sequences count by what they show, not by their bytes.
std::size_t display_width(std::string_view utf8);

// The text with everything that could steer a terminal, or is not UTF-8, shown as '?', and cut to `most` columns with
// an ellipsis. Names come from foreign files.
std::string printable(std::string_view text, std::size_t most = 1'000);

// The text in lines of at most 100 columns, broken at spaces: all but the first begin with so many spaces. What has no
// space is not broken.
std::string wrapped(std::string_view text, std::size_t indent);

enum class Align : std::uint8_t { left, right };

// A table for people: columns line up, headers stand over them. Numbers belong to the right, text to the left.
class Table {
 public:
  struct Column {
    std::string header;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns);
  void add_row(std::vector<std::string> cells);  // one for each column
  std::string text() const;                      // each line ends with a newline; none ends with spaces

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace spillway
