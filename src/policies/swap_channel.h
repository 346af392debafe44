#pragma once

#include <map>
#include <optional>

#include "base/units.h"

namespace spillway {

// A span of the iteration's time.
struct Span {
  Nanos begin, end;
  friend bool operator==(const Span&, const Span&) = default;
};

// Spans of time that are taken, one after the other: of a channel that serves one swap at a time, or of a tensor's
// uses. O(log n) to look, and one step for each span that is in the way.
class TakenSpans {
 public:
  void take(Span span);
  void free(Span span);  // one that was taken
  // The end of the first taken span that ends behind `at` and begins before `until`; nothing: it is free.
  std::optional<Span> in_the_way(Span wanted) const;

 private:
  std::map<Nanos, Nanos> spans_;  // end by begin
};

// The first span of this length within the window that is free in both; or the last one.
std::optional<Span> first_free(Span window, Nanos length, const TakenSpans& channel, const TakenSpans& uses);
std::optional<Span> last_free(Span window, Nanos length, const TakenSpans& channel, const TakenSpans& uses);

}  // namespace spillway
