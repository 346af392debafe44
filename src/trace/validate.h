#pragma once

#include <string>

#include "base/result.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// Of all kernels and gaps: twenty iterations of it, and their stalls, fit 64 bits.
inline constexpr Nanos kMostIterationTime{std::uint64_t{1} << 57};

// Whether the trace obeys every rule of docs/formats/trace.md; the error names the first kernel or tensor that does
// not.
Result<> validate(const Trace& trace, const std::string& where);

}  // namespace spillway
