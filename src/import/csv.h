#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway {

// A table of comma-separated values, whose first line names the columns. `each` is given the values of one line in the
// order of `columns`, which must all be there; a line is a line of the file, and what is between quotes holds commas.
// Its errors get "cannot import FILE: line N: " before them, and `what_to_do` after.
Result<> read_csv(std::string_view text, std::initializer_list<std::string_view> columns, const std::string& file,
                  std::string_view what_to_do,
                  const std::function<Result<>(const std::vector<std::string_view>& values)>& each);

}  // namespace spillway
