#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "import/execution_trace.h"
#include "import/kineto.h"
#include "trace/trace.h"

namespace spillway {

// One iteration from PyTorch's two records of it: which tensors operators use, from the execution trace, and when, from
// the profile. Neither says both. `where` is the execution trace's file. What is inferred: docs/formats/import.md.
Result<Trace> join_chakra(const std::vector<EtNode>& nodes, const Kineto& kineto, const std::string& where,
                          const std::string& name);

}  // namespace spillway
