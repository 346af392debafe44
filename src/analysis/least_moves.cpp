#include "analysis/least_moves.h"

#include <algorithm>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "analysis/changes.h"

namespace spillway {
namespace {

// The more iterations are looked at, the closer the bound: what is away at their end, and comes back later, costs
// nothing there.
constexpr std::uint64_t kIterations = 16;

// What kernels need, and what could be away meanwhile. Kernels are counted through all iterations: `kernels` is kernel
// 0 of the next one.
class Needs {
 public:
  explicit Needs(std::size_t kernels) : begin_(kernels), end_(kernels), beginning_(kernels) {}

  // By the kernels in [begin, end): at most as many as there are, from one of the first iteration on.
  void add(std::size_t begin, std::size_t end, Bytes bytes) {
    const std::size_t kernels = beginning_.size();
    if (begin >= end) return;
    if (begin < kernels && end > kernels) needed_at_start_ += bytes;
    begin_[begin % kernels] += bytes;
    end_[(end - 1) % kernels] += bytes;
  }
  void may_be_away(std::size_t begin, std::size_t end, Bytes bytes) {
    if (begin < end) beginning_[begin % beginning_.size()].push_back({end - begin, bytes});
  }

  // The bytes that must come back in an iteration so that never more than `capacity` are there. Of all ways to get
  // through the first n iterations, whatever was away before them, this one has the fewest bytes come back; a steady
  // plan has n times as many come back as in one.
  Bytes least_returning(Bytes capacity) const {
    std::priority_queue<Open> open;
    const std::size_t kernels = beginning_.size();
    for (std::size_t kernel = 0; kernel < kernels; ++kernel)  // What may be away when the first iteration begins.
      for (const auto& [length, bytes] : beginning_[kernel])
        if (kernel + length > kernels) open.push({kernel + length - kernels, bytes});
    std::vector<Bytes> returning(2 * kernels);
    Bytes needed = needed_at_start_, away, returned, least;
    for (std::uint64_t iteration = 0; iteration < kIterations; ++iteration) {
      for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
        const std::size_t now = kernels * iteration + kernel;
        const Bytes back = std::exchange(returning[now % returning.size()], {});
        away -= back;
        returned += back;
        for (const auto& [length, bytes] : beginning_[kernel]) open.push({now + length, bytes});
        needed += begin_[kernel];
        while (needed > capacity + away && !open.empty() && open.top().until > now) {
          const auto [until, bytes] = open.top();
          open.pop();
          const Bytes part = std::min(bytes, needed - (capacity + away));
          if (part < bytes) open.push({until, bytes - part});
          away += part;
          returning[until % returning.size()] += part;
        }
        if (!open.empty() && open.top().until <= now) open = {};  // All are over.
        needed -= end_[kernel];
      }
      least = std::max(least, Bytes{returned.value / (iteration + 1)});
    }
    return least;
  }

 private:
  struct Open {
    std::size_t until;  // the kernel that needs it next
    Bytes bytes;
    friend auto operator<=>(const Open&, const Open&) = default;
  };
  struct Absence {
    std::size_t length;
    Bytes bytes;
  };
  Bytes needed_at_start_;                        // and in the iteration before
  std::vector<Bytes> begin_, end_;               // by kernel: needed from there on, and there for the last time
  std::vector<std::vector<Absence>> beginning_;  // by kernel
};

Bytes least_in(const Trace& trace, const Lifetimes& lifetimes, Bytes capacity) {
  const std::size_t kernels = trace.kernels.size();
  Needs needs(kernels);
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) needs.add(kernel, kernel + 1, lifetimes.working_set[kernel]);
  for (const InactivePeriod& period : lifetimes.periods) {
    if (period.last) continue;
    const std::size_t begin = period.after.value + 1, end = period.before.value + (period.wraps ? kernels : 0);
    needs.add(begin, end, trace[period.tensor].bytes);
    needs.may_be_away(begin, end, trace[period.tensor].bytes);
  }
  return needs.least_returning(capacity);
}

// Tensors that are carried into the next iteration and read there are left out, which may only make it less.
Bytes least_out(const Trace& trace, const Lifetimes& lifetimes, Bytes capacity) {
  const std::size_t kernels = trace.kernels.size();
  const auto changes = changes_of(trace, lifetimes);
  Needs needs(kernels);
  for (std::uint32_t id = 0; id < trace.tensors.size(); ++id) {
    const Tensor& tensor = trace.tensors[id];
    const Lifetime& life = lifetimes.tensors[id];
    const auto& changed = changes[id];
    const bool is_its_own_heir = life.heir == TensorId{id};
    const bool is_read_before_birth =
        !tensor.persistent && (life.alive_at_start != is_its_own_heir || life.uses.front() != life.birth);
    if (changed.empty() || (life.alive_at_end && !is_its_own_heir) || is_read_before_birth) continue;
    const std::size_t end = tensor.persistent ? changed.front().value + kernels : life.uses.back().value;
    needs.add(changed.front().value, tensor.persistent ? end : end + 1, tensor.bytes);
    for (std::size_t at = 0; at < changed.size(); ++at)
      needs.may_be_away(changed[at].value + 1, at + 1 < changed.size() ? changed[at + 1].value : end, tensor.bytes);
  }
  return needs.least_returning(capacity);
}

}  // namespace

LeastMoves least_moves(const Trace& trace, const Lifetimes& lifetimes, Bytes capacity) {
  const Bytes in = least_in(trace, lifetimes, capacity);
  // Where one kernel uses more than the capacity, more could be away than comes back.
  return {.in = in, .out = std::min(in, least_out(trace, lifetimes, capacity))};
}

}  // namespace spillway
