#include "journal/iteration_ends.h"

#include <algorithm>
#include <string>

#include "journal/coder.h"
#include "journal/fields.h"
#include "journal/record.h"

namespace spillway {

void write(JournalFile& file, const IterationEnded& ended) {
  if (!file.has_begun()) return;
  std::string bytes;
  Encoder encode(bytes);
  encode(Record{ended});
  file.append(bytes);
}

bool IterationEnds::take(const IterationEnded& ended) {
  using enum IterationEnded::Place;
  if (!ends_.empty() && ended.at < ends_.back()) return false;
  if (ended.place == first) ends_.clear();
  if (ended.place == last && !ends_.empty()) ends_.pop_back();
  ends_.push_back(ended.at);
  return true;
}

std::uint64_t IterationEnds::before(Nanos at) const {
  return static_cast<std::uint64_t>(std::ranges::lower_bound(ends_, at) - ends_.begin());
}

}  // namespace spillway
