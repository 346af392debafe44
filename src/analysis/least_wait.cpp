#include "analysis/least_wait.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace spillway {
namespace {

// A stretch begins with every kernel if following all of them takes no more looks at accesses than this; else the
// kernels are cut into fewer parts, this many at least, and one of each begins a stretch.
constexpr std::size_t kLooks = 30'000'000;
constexpr std::size_t kLeastParts = 128;

template <class F>
void for_each_access(const Kernel& kernel, F&& call) {
  for (const auto* accesses : {&kernel.reads, &kernel.writes})
    for (const Access& access : *accesses) call(access);
}

// Which tensors have bytes everywhere, kernel after kernel: what was touched in parts may have none in the others, and
// those come for nothing.
class Whole {
 public:
  // At an iteration's start: what persists, and what has been touched wholly since its birth in the iteration before.
  Whole(const Trace& trace, const Lifetimes& lifetimes)
      : trace_(trace), lifetimes_(lifetimes), whole_(trace.tensors.size()) {
    std::vector<bool> touched(trace.tensors.size());
    for (std::size_t kernel = 0; kernel < trace.kernels.size(); ++kernel) pass(kernel, touched);
    for (std::size_t tensor = 0; tensor < whole_.size(); ++tensor) {
      const auto& from = trace.tensors[tensor].carried_from;
      whole_[tensor] = trace.tensors[tensor].persistent || (from && touched[from->value]);
    }
  }

  bool operator[](TensorId tensor) const { return whole_[tensor.value]; }
  void pass(std::size_t kernel) { pass(kernel, whole_); }

 private:
  void pass(std::size_t kernel, std::vector<bool>& whole) const {
    for (const TensorId born : lifetimes_.births[kernel]) whole[born.value] = false;
    for_each_access(trace_.kernels[kernel], [&](const Access& access) {
      if (is_whole(access)) whole[access.tensor.value] = true;
    });
  }
  bool is_whole(const Access& access) const {
    return !access.sparse && access.end - access.begin == trace_[access.tensor].bytes;
  }

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  std::vector<bool> whole_;  // by tensor
};

// Bytes that a stretch of kernels touches, each once.
class TouchedBytes {
 public:
  // What the stretch's first kernel touches; `whole`: as it ends.
  TouchedBytes(const Trace& trace, const Lifetimes& lifetimes, std::size_t first, const Whole& whole)
      : trace_(trace), lifetimes_(lifetimes), whole_(whole), counted_(trace.tensors.size()) {
    for_each_access(trace.kernels[first], [&](const Access& access) { count(access); });
  }

  // Of what had bytes as the first one ended.
  void add(std::size_t kernel) {
    for (const TensorId born : lifetimes_.births[kernel]) counted_[born.value] = trace_[born].bytes;
    for_each_access(trace_.kernels[kernel], [&](const Access& access) {
      if (whole_[access.tensor]) count(access);
    });
  }
  Bytes bytes() const { return bytes_; }

 private:
  void count(const Access& access) {
    Bytes& counted = counted_[access.tensor.value];
    const Bytes touched = access.sparse ? Bytes{} : access.end - access.begin;
    if (touched <= counted) return;
    bytes_ += touched - counted;
    counted = touched;
  }

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  const Whole& whole_;
  std::vector<Bytes> counted_;  // by tensor
  Bytes bytes_;
};

// By kernel, what is there when it starts and until it ends, if that fits: all of the tensors that it touches, and the
// tensors that may share a block with one of these.
std::vector<Bytes> working_sets(const Trace& trace) {
  constexpr Bytes kSharesBlocks = 4_KiB, kAlignment{64};
  Bytes small;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.bytes < kSharesBlocks) small += tensor.bytes + kAlignment;
  std::vector<Bytes> result;
  std::vector<TensorId> touched;
  for (const Kernel& kernel : trace.kernels) {
    touched.clear();
    for_each_access(kernel, [&](const Access& access) { touched.push_back(access.tensor); });
    std::ranges::sort(touched);
    Bytes sum = small;
    for (std::size_t i = 0; i < touched.size(); ++i)
      if ((i == 0 || touched[i] != touched[i - 1]) && trace[touched[i]].bytes >= kSharesBlocks)
        sum += trace[touched[i]].bytes;
    result.push_back(sum);
  }
  return result;
}

// The largest working set of each of so many parts: before it, little of what is used later can be there already.
std::vector<bool> beginnings(std::span<const Bytes> working_sets, std::size_t accesses) {
  std::vector<bool> begins(working_sets.size());
  const std::size_t parts = std::max(kLeastParts, kLooks / std::max<std::size_t>(1, accesses));
  const std::size_t step = (working_sets.size() + parts - 1) / parts;
  for (std::size_t part = 0; part < working_sets.size(); part += step) {
    const auto kernels = working_sets.subspan(part, std::min(step, working_sets.size() - part));
    begins[part + static_cast<std::size_t>(std::ranges::max_element(kernels) - kernels.begin())] = true;
  }
  return begins;
}

}  // namespace

Nanos least_wait(const Trace& trace, const Lifetimes& lifetimes, Bytes device, Bytes host, BytesPerSecond rate) {
  const std::size_t kernels = trace.kernels.size();
  const std::vector<Bytes> sets = working_sets(trace);
  std::size_t accesses = kernels;
  for (const Kernel& kernel : trace.kernels) accesses += kernel.reads.size() + kernel.writes.size();
  const std::vector<bool> begins = beginnings(sets, accesses);
  std::vector<Nanos> waited(kernels);  // before each kernel's start
  Whole whole(trace, lifetimes);
  const auto stretch_from = [&](std::size_t begin) {
    TouchedBytes touched(trace, lifetimes, begin, whole);
    Nanos ran;
    for (std::size_t kernel = begin + 1; kernel < kernels; ++kernel) {
      touched.add(kernel);
      ran += trace.kernels[kernel].gap;
      const Nanos comes = transfer_time(excess(touched.bytes(), device + host), rate);
      if (sets[kernel] <= device) waited[kernel] = std::max(waited[kernel], waited[begin] + excess(comes, ran));
      ran += trace.kernels[kernel].duration;
    }
  };
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    if (kernel > 0) waited[kernel] = std::max(waited[kernel], waited[kernel - 1]);
    whole.pass(kernel);
    if (begins[kernel] && sets[kernel] <= device) stretch_from(kernel);
  }
  return kernels == 0 ? Nanos{} : waited.back();
}

}  // namespace spillway
