#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "trace/trace.h"

namespace spillway {

// No tensor is larger: sums of all that a file has fit 64 bits.
inline constexpr std::uint64_t kMostEtBytes = std::uint64_t{1} << 50;

// A tensor that an operator is given or returns.
struct EtTensor {
  std::uint64_t storage = 0;  // by its address: what is made where another storage was has that one's number
  Bytes bytes = {};           // of the storage, up to the last that the tensor shows
  std::string device = {};
  std::size_t argument = 0;  // which of the operator's arguments or results it is, or is in
  Sizes sizes = {};
};

// A call of an operator, or a part of the script that has a name.
struct EtNode {
  std::uint64_t id = 0, parent = 0;  // numbered as they began
  std::uint64_t function = 0;        // rf_id
  std::uint64_t thread = 0;          // numbered by the observer
  std::string name = {};
  std::string schema = {};  // "aten::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)"; empty if it is no operator
  std::vector<EtTensor> inputs = {}, outputs = {};
};

// What PyTorch's ExecutionTraceObserver writes, which Chakra calls a host execution trace: schemas 1.0.1 to 1.1.1
// (pytorch, torch/csrc/profiler/standalone/execution_trace_observer.cpp). In the order of their ids.
Result<std::vector<EtNode>> parse_execution_trace(std::string_view json, const std::string& where);

// The arguments of an operator's schema: names, and whether the operator writes them.
struct EtArgument {
  std::string name = {};
  bool written = false;
};
std::vector<EtArgument> arguments_of(std::string_view schema);

}  // namespace spillway
