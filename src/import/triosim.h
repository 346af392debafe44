#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"

namespace spillway {

// A pair of tables of TrioSim: operators with times in microseconds, and the tensors that they name
// (https://github.com/sarchlab/triosim, trace.csv and tensor.csv of tracer/dataprocess.py). `operators_file` and
// `tensors_file` are for errors. What is inferred: docs/formats/import.md.
Result<Trace> parse_triosim(std::string_view operators, std::string_view tensors, const std::string& operators_file,
                            const std::string& tensors_file, const std::string& name);

}  // namespace spillway
