#pragma once

#include <string>

#include "base/result.h"
#include "trace/trace.h"

namespace spillway {

// Whether the trace obeys every rule of docs/formats/trace.md; the error names the first kernel or tensor that does
// not.
Result<> validate(const Trace& trace, const std::string& where);

}  // namespace spillway
