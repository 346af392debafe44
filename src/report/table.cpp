#include "report/table.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace spillway {
namespace {

struct CodePoint {
  char32_t value;
  std::size_t bytes;
};

// The first code point of `text`, which is not empty; nothing if it is not UTF-8.
std::optional<CodePoint> first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return std::nullopt;
  char32_t value = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return std::nullopt;
    value = (value << 6) | (byte(i) & 0x3fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kLeast[bytes] || value > 0x10ffff || is_surrogate) return std::nullopt;
  return CodePoint{value, bytes};
}

// The two ends of each range are in it. Good enough for names in tables; full tables are the terminal's business.
std::size_t columns_of(char32_t c) {
  const auto in = [c](char32_t first, char32_t last) { return first <= c && c <= last; };
  const bool combining = in(0x300, 0x36f) || in(0x200b, 0x200f) || in(0x20d0, 0x20ff) || in(0xfe00, 0xfe0f);
  const bool wide = in(0x1100, 0x115f) || in(0x2e80, 0xa4cf) || in(0xac00, 0xd7a3) || in(0xf900, 0xfaff) ||
                    in(0xfe30, 0xfe6f) || in(0xff00, 0xff60) || in(0x1f300, 0x1faff) || in(0x20000, 0x3fffd);
  return combining ? 0 : wide ? 2 : 1;
}

// Controls, and the marks that reverse the direction of text.
bool steers(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0x2028 || c == 0x2029;
}

}  // namespace

std::size_t display_width(std::string_view utf8) {
  std::size_t width = 0;
  while (!utf8.empty()) {
    const auto point = first_code_point(utf8);
    width += point ? columns_of(point->value) : 1;
    utf8.remove_prefix(point ? point->bytes : 1);
  }
  return width;
}

std::string printable(std::string_view text, std::size_t most) {
  CHECK(most >= 1);
  std::string shown;
  std::size_t width = 0;
  std::size_t keep = 0;  // bytes of `shown` that leave a column for the ellipsis
  while (!text.empty()) {
    const auto point = first_code_point(text);
    const std::size_t bytes = point ? point->bytes : 1;
    const bool replace = !point || steers(point->value);
    shown += replace ? "?" : text.substr(0, bytes);
    width += replace ? 1 : columns_of(point->value);
    if (width < most) keep = shown.size();
    if (width > most) return shown.substr(0, keep) + "…";
    text.remove_prefix(bytes);
  }
  return shown;
}

std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t kMost = 100;
  std::string lines;
  std::size_t width = 0;  // of the last line
  while (!text.empty()) {
    // A word with the spaces before it.
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t more = display_width(text.substr(0, end));
    if (!lines.empty() && width + more > kMost) {
      const std::string_view word = text.substr(begin, end - begin);
      lines += "\n" + std::string(indent, ' ') + std::string(word);
      width = indent + display_width(word);
    } else {
      lines += text.substr(0, end);
      width += more;
    }
    text.remove_prefix(end);
  }
  return lines;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) { CHECK(!columns_.empty()); }

void Table::add_row(std::vector<std::string> cells) {
  CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(display_width(columns_[c].header));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string out;
  const auto append = [&](std::size_t c, const std::string& cell) {
    const std::string padding(widths[c] - display_width(cell), ' ');
    if (c > 0) out += "  ";
    out += columns_[c].align == Align::right ? padding + cell : cell + padding;
  };
  const auto end_line = [&] {
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  for (std::size_t c = 0; c < columns_.size(); ++c) append(c, columns_[c].header);
  end_line();
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < columns_.size(); ++c) append(c, row[c]);
    end_line();
  }
  return out;
}

}  // namespace spillway
