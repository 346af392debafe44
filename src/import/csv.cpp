#include "import/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace spillway {
namespace {

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  bool quoted = false;
  std::size_t begin = 0;
  const auto end_field = [&](std::size_t at) {
    std::string_view field = line.substr(begin, at - begin);
    if (field.size() >= 2 && field.starts_with('"') && field.ends_with('"')) field = field.substr(1, field.size() - 2);
    fields.push_back(field);
    begin = at + 1;
  };
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') quoted = !quoted;
    if (line[at] == ',' && !quoted) end_field(at);
  }
  end_field(line.size());
  return fields;
}

}  // namespace

Result<> read_csv(std::string_view text, std::initializer_list<std::string_view> columns, const std::string& file,
                  std::string_view what_to_do,
                  const std::function<Result<>(const std::vector<std::string_view>& values)>& each) {
  std::size_t number = 0;
  const auto wrong = [&](std::string_view what) {
    return fail(Errc::bad_input, fmt::format("cannot import {}: line {}: {}; {}", file, number, what, what_to_do));
  };
  std::vector<std::size_t> places;
  std::size_t width = 0;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    ++number;
    if (line.empty()) continue;
    const std::vector<std::string_view> fields = fields_of(line);
    if (places.empty()) {
      width = fields.size();
      for (const std::string_view column : columns) {
        const auto found = std::ranges::find(fields, column);
        if (found == fields.end()) return wrong(fmt::format("it names no column '{}'", column));
        places.push_back(static_cast<std::size_t>(found - fields.begin()));
      }
      continue;
    }
    if (fields.size() != width) return wrong(fmt::format("it has {} values for {} columns", fields.size(), width));
    std::vector<std::string_view> values;
    for (const std::size_t place : places) values.push_back(fields[place]);
    if (Result<> outcome = each(values); !outcome) return wrong(outcome.error().message);
  }
  if (places.empty()) return wrong("the file is empty");
  return {};
}

}  // namespace spillway
