#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "journal/iteration_ended.h"
#include "journal/journal_file.h"

namespace spillway {

// Writes into a journal that has begun that an iteration has ended. Any thread; the script's iterations end in order.
void write(JournalFile& file, const IterationEnded& ended);

// When a run's iterations ended. Iterations count from 1, and are those of the run's report.
class IterationEnds {
 public:
  // False, and nothing is taken: it would end before an earlier one. One that goes on with none is the first.
  bool take(const IterationEnded& ended);
  std::uint64_t count() const { return ends_.size(); }
  Nanos operator[](std::uint64_t iteration) const { return ends_.at(iteration - 1); }
  // So many had ended before something happened then. What happens just when one ends is a part of it.
  std::uint64_t before(Nanos at) const;

 private:
  std::vector<Nanos> ends_;  // ascending
};

}  // namespace spillway
