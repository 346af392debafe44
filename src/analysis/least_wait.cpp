#include "analysis/least_wait.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace spillway {
namespace {

constexpr std::size_t kBeginnings = 128;

// What kernels use that was there before them, each byte once.
class Needs {
 public:
  Needs(const Trace& trace, const Lifetimes& lifetimes)
      : trace_(trace), lifetimes_(lifetimes), counted_(trace.tensors.size()) {}

  void add(std::uint32_t kernel) {
    for (const TensorId born : lifetimes_.births[kernel]) counted_[born.value] = trace_[born].bytes;
    for (const auto* accesses : {&trace_.kernels[kernel].reads, &trace_.kernels[kernel].writes})
      for (const Access& access : *accesses) {
        Bytes& counted = counted_[access.tensor.value];
        const Bytes touched = access.sparse ? Bytes{} : access.end - access.begin;
        if (touched <= counted) continue;
        bytes_ += touched - counted;
        counted = touched;
      }
  }
  Bytes bytes() const { return bytes_; }

 private:
  const Trace& trace_;
  const Lifetimes& lifetimes_;
  std::vector<Bytes> counted_;  // by tensor
  Bytes bytes_;
};

}  // namespace

Nanos least_wait(const Trace& trace, const Lifetimes& lifetimes, Bytes capacity, BytesPerSecond rate) {
  const std::size_t kernels = trace.kernels.size();
  const std::size_t step = std::max<std::size_t>(1, kernels / kBeginnings);
  std::vector<Nanos> waited(kernels + 1);  // before each kernel
  for (std::size_t begin = 0; begin < kernels; ++begin) {
    waited[begin + 1] = std::max(waited[begin + 1], waited[begin]);
    if (begin % step != 0) continue;
    Needs needs(trace, lifetimes);
    Nanos ran;
    for (std::size_t kernel = begin; kernel < kernels; ++kernel) {
      needs.add(static_cast<std::uint32_t>(kernel));
      ran += trace.kernels[kernel].gap + trace.kernels[kernel].duration;
      const Nanos comes = transfer_time(excess(needs.bytes(), capacity), rate);
      waited[kernel + 1] = std::max(waited[kernel + 1], waited[begin] + excess(comes, ran));
    }
  }
  return waited[kernels];
}

}  // namespace spillway
