#include "analysis/least_wait.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace spillway {
namespace {

constexpr std::size_t kBeginnings = 128;

template <class F>
void for_each_access(const Kernel& kernel, F&& call) {
  for (const auto* accesses : {&kernel.reads, &kernel.writes})
    for (const Access& access : *accesses) call(access);
}

// Which tensors have bytes everywhere, kernel after kernel: what was touched in parts may have none in the others, and
// those come for nothing.
class Whole {
 public:
  // At an iteration's start: what persists, and what has been touched wholly in the iteration before.
  Whole(const Trace& trace, const Lifetimes& lifetimes)
      : trace_(trace), lifetimes_(lifetimes), whole_(trace.tensors.size()) {
    std::vector<bool> touched(trace.tensors.size());
    for (const Kernel& kernel : trace.kernels)
      for_each_access(kernel, [&](const Access& access) {
        if (is_whole(access)) touched[access.tensor.value] = true;
      });
    for (std::size_t tensor = 0; tensor < whole_.size(); ++tensor) {
      const auto& from = trace.tensors[tensor].carried_from;
      whole_[tensor] = trace.tensors[tensor].persistent || (from && touched[from->value]);
    }
  }

  bool operator[](TensorId tensor) const { return whole_[tensor.value]; }
  void pass(std::size_t kernel) {
    for (const TensorId born : lifetimes_.births[kernel]) whole_[born.value] = false;
    for_each_access(trace_.kernels[kernel], [&](const Access& access) {
      if (is_whole(access)) whole_[access.tensor.value] = true;
    });
  }

 private:
  bool is_whole(const Access& access) const {
    return !access.sparse && access.end - access.begin == trace_[access.tensor].bytes;
  }

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  std::vector<bool> whole_;  // by tensor
};

// What a stretch of kernels uses of what had bytes before, each byte once.
class UsedBytes {
 public:
  UsedBytes(const Trace& trace, const Lifetimes& lifetimes, const Whole& before)
      : trace_(trace), lifetimes_(lifetimes), before_(before), counted_(trace.tensors.size()) {}

  void add(std::size_t kernel) {
    for (const TensorId born : lifetimes_.births[kernel]) counted_[born.value] = trace_[born].bytes;
    for_each_access(trace_.kernels[kernel], [&](const Access& access) {
      Bytes& counted = counted_[access.tensor.value];
      const Bytes touched = access.sparse ? Bytes{} : access.end - access.begin;
      if (!before_[access.tensor] || touched <= counted) return;
      bytes_ += touched - counted;
      counted = touched;
    });
  }
  Bytes bytes() const { return bytes_; }

 private:
  const Trace& trace_;
  const Lifetimes& lifetimes_;
  const Whole& before_;
  std::vector<Bytes> counted_;  // by tensor
  Bytes bytes_;
};

}  // namespace

Nanos least_wait(const Trace& trace, const Lifetimes& lifetimes, Bytes capacity, BytesPerSecond rate) {
  const std::size_t kernels = trace.kernels.size();
  const std::size_t step = (kernels + kBeginnings - 1) / kBeginnings;
  std::vector<Nanos> waited(kernels + 1);  // before each kernel
  Whole whole(trace, lifetimes);
  const auto stretch_from = [&](std::size_t begin) {
    UsedBytes used(trace, lifetimes, whole);
    Nanos ran;
    for (std::size_t kernel = begin; kernel < kernels; ++kernel) {
      used.add(kernel);
      ran += trace.kernels[kernel].gap + trace.kernels[kernel].duration;
      const Nanos comes = transfer_time(excess(used.bytes(), capacity), rate);
      waited[kernel + 1] = std::max(waited[kernel + 1], waited[begin] + excess(comes, ran));
    }
  };
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    if (kernel % step == 0) stretch_from(kernel);
    waited[kernel + 1] = std::max(waited[kernel + 1], waited[kernel]);
    whole.pass(kernel);
  }
  return waited[kernels];
}

}  // namespace spillway
