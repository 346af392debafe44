// Why kernels waited, told from what moved meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "timeline/run_timeline.h"

namespace spillway {
namespace {

using Span = std::pair<Nanos, Nanos>;

// The time in which what moves can be what a kernel waits for: page faults come while it runs.
Span wait_of(const PlayedKernel& kernel) { return {kernel.ready, kernel.faults > 0 ? kernel.end : kernel.start}; }

// What comes up to the device, by tensor.
class Arrivals {
 public:
  explicit Arrivals(const RunTimeline& timeline) : of_(timeline.tensors.size()) {
    for (const PlayedTransfer& one : timeline.transfers) {  // by begin
      if (one.to != Tier::device || !one.tensor) continue;
      std::vector<Arrival>& list = of_[one.tensor->value];
      const Nanos before = list.empty() ? Nanos{} : list.back().all_ended;
      list.push_back({&one, std::max(before, one.end)});
    }
  }

  // Those that are not over at `from`, and have begun before `until`.
  template <class Look>
  void between(TensorId tensor, Nanos from, Nanos until, Look look) const {
    const std::vector<Arrival>& list = of_[tensor.value];
    const auto over = [&](const Arrival& one) { return one.all_ended <= from; };
    for (auto one = std::ranges::partition_point(list, over); one != list.end(); ++one) {
      if (one->transfer->begin >= until) break;
      if (one->transfer->end > from) look(*one->transfer);
    }
  }

 private:
  struct Arrival {
    const PlayedTransfer* transfer;
    Nanos all_ended;  // this one and those before it
  };
  std::vector<std::vector<Arrival>> of_;
};

// What leaves the device in any span of time, without looking at each transfer: those that have begun before its end,
// less those that were over at its beginning.
class Departures {
 public:
  explicit Departures(const RunTimeline& timeline) {
    for (const PlayedTransfer& one : timeline.transfers) {
      if (one.from != Tier::device || !one.copied) continue;
      begun_.push_back({one.begin, one.bytes});
      over_.push_back({one.end, one.bytes});
    }
    for (std::vector<Sum>* sums : {&begun_, &over_}) {
      std::ranges::stable_sort(*sums, {}, &Sum::at);
      Bytes so_far;
      for (Sum& one : *sums) one.bytes = so_far += one.bytes;
    }
  }

  // "1.2 GiB left the device meanwhile, in 3 transfers", or nothing. The span is not empty.
  std::string within(const Span& span) const {
    const auto begun = std::ranges::lower_bound(begun_, span.second, {}, &Sum::at) - begun_.begin();
    const auto over = std::ranges::upper_bound(over_, span.first, {}, &Sum::at) - over_.begin();
    if (begun <= over) return "";
    const Bytes bytes = sum_of(begun_, begun) - sum_of(over_, over);
    return fmt::format("{} left the device meanwhile, in {} transfer{}", to_text(bytes), begun - over,
                       begun - over == 1 ? "" : "s");
  }

 private:
  struct Sum {
    Nanos at;
    Bytes bytes;  // of all up to this one
  };
  static Bytes sum_of(const std::vector<Sum>& sums, std::ptrdiff_t first) {
    return first == 0 ? Bytes{} : sums[static_cast<std::size_t>(first - 1)].bytes;
  }
  std::vector<Sum> begun_, over_;
};

// What came up for a kernel while it waited.
struct CameUp {
  std::vector<Span> moving, asked;       // within the wait
  const PlayedTransfer* last = nullptr;  // that came
  Nanos first_asked{UINT64_MAX >> 1};    // of any
};

CameUp came_up_for(const PlayedKernel& kernel, const Arrivals& arrivals) {
  CameUp found;
  const auto [from, until] = wait_of(kernel);
  const auto look = [&, least = from, most = until](const PlayedTransfer& one) {
    found.moving.emplace_back(std::max(one.begin, least), std::min(one.end, most));
    found.asked.emplace_back(std::max(one.queued, least), std::min(one.end, most));
    found.first_asked = std::min(found.first_asked, one.queued);
    if (found.last == nullptr || one.end > found.last->end) found.last = &one;
  };
  for (const TensorId tensor : kernel.reads) arrivals.between(tensor, from, until, look);
  for (const TensorId tensor : kernel.writes) arrivals.between(tensor, from, until, look);
  return found;
}

std::string faults_text(const PlayedKernel& kernel) {
  return fmt::format("{} page fault{} while it ran", kernel.faults, kernel.faults == 1 ? "" : "s");
}

void explain_without_arrivals(PlayedKernel& kernel, const std::string& left) {
  const std::string waited = "waited " + to_text(kernel.wait());
  kernel.stall = left.empty() ? Stall::other : Stall::no_room;
  if (!left.empty())
    kernel.cause = fmt::format("{} for room on the device: {}", waited, left);
  else if (kernel.faults > 0)
    kernel.cause = fmt::format("{} by {}: memory that had no bytes yet, or that came back with others", waited,
                               faults_text(kernel));
  else
    kernel.cause = waited + ": nothing came for it; the plan makes it await a move, or faults were handled";
}

void explain(const RunTimeline& timeline, PlayedKernel& kernel, const Arrivals& arrivals,
             const Departures& departures) {
  const CameUp came = came_up_for(kernel, arrivals);
  const std::string left = departures.within(wait_of(kernel));
  if (came.last == nullptr) return explain_without_arrivals(kernel, left);
  const Nanos moving = covered(came.moving);
  const Nanos behind = excess(covered(came.asked), moving);
  const Nanos before = excess(kernel.wait(), moving + behind);
  const PlayedTransfer& last = *came.last;
  kernel.waited_for = last.tensor;
  const PlayedTensor& tensor = timeline.tensors[last.tensor->value];
  std::string what = fmt::format("waited {} for {} ({}) from {}", to_text(kernel.wait()), tensor.name,
                                 to_text(tensor.bytes), last.from == Tier::ssd ? "the SSD" : "the host");
  if (kernel.faults > 0) what += ", by " + faults_text(kernel);
  if (before > moving && before > behind) {
    kernel.stall = Stall::no_room;
    kernel.cause =
        fmt::format("{}: nothing could come before there was room{}{}", what, left.empty() ? "" : "; ", left);
  } else if (behind > moving) {
    kernel.stall = Stall::behind_others;
    kernel.cause = what + ": it was asked for, but other transfers came first on that link";
  } else if (came.first_asked >= kernel.ready) {
    kernel.stall = Stall::asked_late;
    kernel.cause = what + ": nobody had asked for it before the kernel wanted it";
  } else {
    kernel.stall = Stall::on_its_way;
    kernel.cause = fmt::format("{}: it was asked for {} before the kernel was ready, and still moved", what,
                               to_text(kernel.ready - came.first_asked));
  }
}

}  // namespace

Nanos covered(std::vector<Span> spans) {
  std::ranges::sort(spans);
  Nanos sum, reached;
  for (const auto& [begin, end] : spans) {
    sum += excess(end, std::max(begin, reached));
    reached = std::max(reached, end);
  }
  return sum;
}

void explain_stalls(RunTimeline& timeline) {
  const Arrivals arrivals(timeline);
  const Departures departures(timeline);
  for (PlayedKernel& kernel : timeline.kernels)
    if (kernel.start > kernel.ready) explain(timeline, kernel, arrivals, departures);
}

}  // namespace spillway
