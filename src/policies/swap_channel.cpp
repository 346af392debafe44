#include "policies/swap_channel.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace spillway {

void TakenSpans::take(Span span) {
  CHECK(span.begin < span.end && !in_the_way(span));
  spans_.emplace(span.begin, span.end);
}

void TakenSpans::free(Span span) {
  const auto found = spans_.find(span.begin);
  CHECK(found != spans_.end() && found->second == span.end);
  spans_.erase(found);
}

std::optional<Span> TakenSpans::in_the_way(Span wanted) const {
  auto next = spans_.lower_bound(wanted.begin);
  if (next != spans_.begin() && std::prev(next)->second > wanted.begin) --next;
  if (next == spans_.end() || next->first >= wanted.end) return std::nullopt;
  return Span{next->first, next->second};
}

std::optional<Span> first_free(Span window, Nanos length, const TakenSpans& channel, const TakenSpans& uses) {
  Nanos begin = window.begin;
  while (begin + length <= window.end) {
    const Span wanted{begin, begin + length};
    auto taken = channel.in_the_way(wanted);
    if (!taken) taken = uses.in_the_way(wanted);
    if (!taken) return wanted;
    begin = taken->end;
  }
  return std::nullopt;
}

std::optional<Span> last_free(Span window, Nanos length, const TakenSpans& channel, const TakenSpans& uses) {
  Nanos end = window.end;
  while (window.begin + length <= end) {
    const Span wanted{end - length, end};
    auto taken = channel.in_the_way(wanted);
    if (!taken) taken = uses.in_the_way(wanted);
    if (!taken) return wanted;
    end = taken->begin;
  }
  return std::nullopt;
}

}  // namespace spillway
