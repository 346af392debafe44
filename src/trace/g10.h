#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"

namespace spillway {

// The kernels of one training iteration as the public G10 artifact's analysis prints them, on an A100 of 1.2 GHz
// (https://github.com/platformxlab/G10, results/*/statistics/kernels.config). `path` names that file, the same
// compressed, or its folder. What the artifact does not say is inferred: phases from the kernels' names, kinds from who
// uses a tensor first, deaths from who uses it last.
Result<Trace> import_g10(const std::string& path);

// The same from memory.
Result<Trace> parse_g10(std::string_view text, const std::string& where, const std::string& name);

}  // namespace spillway
