// Why kernels waited, told from what moved meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "timeline/run_timeline.h"

namespace spillway {
namespace {

using Span = std::pair<Nanos, Nanos>;

// So much time the spans cover together.
Nanos covered(std::vector<Span> spans) {
  std::ranges::sort(spans);
  Nanos sum, reached;
  for (const auto& [begin, end] : spans) {
    sum += excess(end, std::max(begin, reached));
    reached = std::max(reached, end);
  }
  return sum;
}

// What came up for a kernel while it waited.
struct Arrivals {
  std::vector<Span> moving, asked;       // within the wait
  const PlayedTransfer* last = nullptr;  // that came
  Nanos first_asked{UINT64_MAX >> 1};    // of any
};

Arrivals arrivals_of(const RunTimeline& timeline, const PlayedKernel& kernel,
                     const std::vector<std::vector<std::size_t>>& up_of) {
  Arrivals found;
  const auto look = [&](TensorId tensor) {
    for (const std::size_t at : up_of[tensor.value]) {
      const PlayedTransfer& one = timeline.transfers[at];
      if (one.end <= kernel.ready || one.queued >= kernel.start) continue;
      found.moving.emplace_back(std::max(one.begin, kernel.ready), std::min(one.end, kernel.start));
      found.asked.emplace_back(std::max(one.queued, kernel.ready), std::min(one.end, kernel.start));
      found.first_asked = std::min(found.first_asked, one.queued);
      if (found.last == nullptr || one.end > found.last->end) found.last = &one;
    }
  };
  for (const TensorId tensor : kernel.reads) look(tensor);
  for (const TensorId tensor : kernel.writes) look(tensor);
  return found;
}

// "1.2 GiB left the device meanwhile, in 3 transfers", or nothing.
std::string left_meanwhile(const RunTimeline& timeline, const PlayedKernel& kernel) {
  std::uint64_t count = 0;
  Bytes bytes;
  for (const PlayedTransfer& one : timeline.transfers) {
    if (one.begin >= kernel.start) break;
    if (one.from != Tier::device || one.end <= kernel.ready || !one.copied) continue;
    ++count;
    bytes += one.bytes;
  }
  if (count == 0) return "";
  return fmt::format("{} left the device meanwhile, in {} transfer{}", to_text(bytes), count, count == 1 ? "" : "s");
}

void explain(RunTimeline& timeline, PlayedKernel& kernel, const std::vector<std::vector<std::size_t>>& up_of) {
  const Arrivals arrivals = arrivals_of(timeline, kernel, up_of);
  const std::string left = left_meanwhile(timeline, kernel);
  const std::string waited = "waited " + to_text(kernel.wait());
  if (arrivals.last == nullptr) {
    kernel.stall = left.empty() ? Stall::other : Stall::no_room;
    kernel.cause = left.empty()
                       ? waited + ": nothing came for it; the plan makes it await a move, or faults were handled"
                       : fmt::format("{} for room on the device: {}", waited, left);
    return;
  }
  const Nanos moving = covered(arrivals.moving);
  const Nanos behind = excess(covered(arrivals.asked), moving);
  const Nanos before = excess(kernel.wait(), moving + behind);
  const PlayedTransfer& last = *arrivals.last;
  kernel.waited_for = last.tensor;
  const PlayedTensor& tensor = timeline.tensors[last.tensor->value];
  const std::string what = fmt::format("{} for {} ({}) from {}", waited, tensor.name, to_text(tensor.bytes),
                                       last.from == Tier::ssd ? "the SSD" : "the host");
  if (before > moving && before > behind) {
    kernel.stall = Stall::no_room;
    kernel.cause =
        fmt::format("{}: nothing could come before there was room{}{}", what, left.empty() ? "" : "; ", left);
  } else if (behind > moving) {
    kernel.stall = Stall::behind_others;
    kernel.cause = what + ": it was asked for, but other transfers came first on that link";
  } else if (arrivals.first_asked >= kernel.ready) {
    kernel.stall = Stall::asked_late;
    kernel.cause = what + ": nobody had asked for it before the kernel wanted it";
  } else {
    kernel.stall = Stall::on_its_way;
    kernel.cause = fmt::format("{}: it was asked for {} before the kernel was ready, and still moved", what,
                               to_text(kernel.ready - arrivals.first_asked));
  }
}

}  // namespace

void explain_stalls(RunTimeline& timeline) {
  std::vector<std::vector<std::size_t>> up_of(timeline.tensors.size());  // transfers by tensor
  for (std::size_t at = 0; at < timeline.transfers.size(); ++at)
    if (const PlayedTransfer& one = timeline.transfers[at]; one.to == Tier::device && one.tensor)
      up_of[one.tensor->value].push_back(at);
  for (PlayedKernel& kernel : timeline.kernels)
    if (kernel.start > kernel.ready) explain(timeline, kernel, up_of);
}

}  // namespace spillway
