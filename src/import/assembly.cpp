#include "import/assembly.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trace/validate.h"

namespace spillway {

Assembly::Assembly(std::string name, std::string source) {
  trace_.name = std::move(name);
  trace_.source = std::move(source);
}

TensorId Assembly::add(std::string name, Bytes bytes, bool made) {
  ++size_;
  trace_.tensors.push_back({.name = std::move(name), .bytes = bytes});
  uses_.push_back({.made = made});
  return {static_cast<std::uint32_t>(trace_.tensors.size() - 1)};
}

void Assembly::rename(TensorId tensor, std::string name) { trace_.tensors[tensor.value].name = std::move(name); }

void Assembly::grow(TensorId tensor, Bytes bytes) {
  Bytes& size = trace_.tensors[tensor.value].bytes;
  size = std::max(size, bytes);
}

void Assembly::keep(TensorId tensor, TensorKind kind) {
  trace_.tensors[tensor.value].persistent = true;
  trace_.tensors[tensor.value].kind = kind;
}

void Assembly::begin(std::string name, Phase phase, Nanos duration, Nanos gap) {
  ++size_;
  trace_.kernels.push_back({.name = std::move(name), .phase = phase, .duration = duration, .gap = gap});
}

void Assembly::use(TensorId tensor) {
  CHECK(!trace_.kernels.empty());
  ++size_;
  Uses& uses = uses_[tensor.value];
  uses.last = trace_.kernels.size() - 1;
  if (!uses.first) uses.first = uses.last;
}

void Assembly::read(TensorId tensor) {
  Uses& uses = uses_[tensor.value];
  if (uses.made && !uses.first) return write(tensor);
  if (uses.made && uses.first == trace_.kernels.size() - 1) return;  // it has just been filled
  if (!uses.first) uses.read_first = true;
  use(tensor);
  if (std::exchange(uses.reader, trace_.kernels.size()) != trace_.kernels.size())
    trace_.kernels.back().reads.push_back({.tensor = tensor, .end = {}});
}

void Assembly::write(TensorId tensor) {
  use(tensor);
  Uses& uses = uses_[tensor.value];
  uses.written = true;
  if (std::exchange(uses.writer, trace_.kernels.size()) != trace_.kernels.size())
    trace_.kernels.back().writes.push_back({.tensor = tensor, .end = {}});
}

Phase Assembly::first_phase(TensorId tensor) const { return trace_.kernels[uses_[tensor.value].first.value()].phase; }

void Assembly::shape(Sizes sizes) {
  CHECK(!trace_.kernels.empty());
  size_ += 1 + sizes.size();
  trace_.kernels.back().shapes.push_back(std::move(sizes));
}

void Assembly::release(TensorId tensor) {
  if (!trace_.kernels.empty()) release(tensor, trace_.kernels.size() - 1);
}

void Assembly::release(TensorId tensor, std::size_t kernel) { uses_[tensor.value].death = kernel; }

Result<Trace> Assembly::finish(const std::string& where) && {
  std::vector<TensorId> now(trace_.tensors.size());
  std::vector<Tensor> tensors;
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
    Tensor& tensor = trace_.tensors[t];
    const Uses& uses = uses_[t];
    if (!uses.first && !tensor.persistent) continue;
    now[t] = {static_cast<std::uint32_t>(tensors.size())};
    if (!tensor.persistent) {
      const std::size_t death = std::max(uses.last, uses.death.value_or(uses.last));
      trace_.kernels[death].frees.push_back(now[t]);
      const bool within = *uses.first == death && !uses.read_first;
      tensor.kind = uses.read_first ? TensorKind::input
                    : within        ? TensorKind::workspace
                                    : kind_made_in(trace_.kernels[*uses.first].phase);
    }
    tensors.push_back(std::move(tensor));
  }
  trace_.tensors = std::move(tensors);
  for (Kernel& kernel : trace_.kernels)
    for (auto* accesses : {&kernel.reads, &kernel.writes})
      for (Access& access : *accesses) {
        access.tensor = now[access.tensor.value];
        access.end = trace_[access.tensor].bytes;
      }
  TRY_VOID(validate(trace_, where));
  return std::move(trace_);
}

}  // namespace spillway
