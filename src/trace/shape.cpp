#include "trace/shape.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <span>
#include <vector>

namespace spillway {
namespace {

std::string hash_of(const void* data, std::size_t bytes) { return fmt::format("{:016x}", XXH3_64bits(data, bytes)); }

void append(std::vector<std::uint64_t>& values, std::span<const Access> accesses) {
  values.push_back(accesses.size());
  for (const Access& access : accesses)
    values.insert(values.end(), {access.tensor.value, access.begin.value, access.end.value, access.sparse});
}

}  // namespace

TraceShape shape_of(const Trace& trace) {
  TraceShape shape{.kernels = trace.kernels.size(), .tensors = trace.tensors.size()};
  std::vector<std::uint64_t> values;
  for (const Tensor& tensor : trace.tensors)
    values.insert(values.end(), {tensor.bytes.value, static_cast<std::uint64_t>(tensor.kind), tensor.persistent,
                                 tensor.carried_from ? 1 + std::uint64_t{tensor.carried_from->value} : 0});
  std::string names;
  for (const Kernel& kernel : trace.kernels) {
    names += kernel.name;
    names += '\0';
    append(values, kernel.reads);
    append(values, kernel.writes);
    values.push_back(kernel.frees.size());
    for (const TensorId freed : kernel.frees) values.push_back(freed.value);
  }
  shape.names = hash_of(names.data(), names.size());
  shape.uses = hash_of(values.data(), values.size() * sizeof values.front());
  return shape;
}

std::string difference(const TraceShape& is, const TraceShape& wanted) {
  if (is.kernels != wanted.kernels) return fmt::format("it has {} kernels, not {}", is.kernels, wanted.kernels);
  if (is.names != wanted.names) return "it has as many kernels, but others";
  if (is.tensors != wanted.tensors)
    return fmt::format("it has the same kernels, but {} tensors, not {}", is.tensors, wanted.tensors);
  if (is.uses != wanted.uses) return "it has the same kernels and as many tensors, but uses them otherwise";
  return {};
}

}  // namespace spillway
