#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"

namespace spillway {

// One log of DTR's prototype, which its simulator simrd reads: a JSON object on each line, times in nanoseconds
// (https://github.com/uwsampl/dtr-prototype, simrd/simrd/parse/parse.py and dtr_code/dtr-implementation.patch). What is
// inferred: docs/formats/import.md.
Result<Trace> parse_dtr(std::string_view text, const std::string& where, const std::string& name);

}  // namespace spillway
