#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace spillway {

// What a trace is like apart from its times and its tensors' names: two runs of a script that do the same have one
// shape.
struct TraceShape {
  std::uint64_t kernels = 0, tensors = 0;  // how many
  std::string names{};                     // hash of the kernels' names
  std::string uses{};                      // hash of the tensors and of what each kernel does with them
  friend bool operator==(const TraceShape&, const TraceShape&) = default;
};
TraceShape shape_of(const Trace& trace);

// What is different first: "it has 12 kernels, not 14". Empty if nothing is.
std::string difference(const TraceShape& is, const TraceShape& wanted);

}  // namespace spillway
