#pragma once

#include <vector>

#include "memory/page_table.h"
#include "timeline/run_timeline.h"

namespace spillway {

// Writes down what is on the tiers.
class LevelLog {
 public:
  // Only what comes now counts.
  void begin(Nanos at, const PageTable& table);
  void note(Nanos at, const PageTable& table);
  // From the beginning on, which is their time zero; what no picture would show is left out.
  std::vector<TierLevel> levels() const;
  const PerTier<Bytes>& peak() const { return peak_; }

 private:
  Nanos begin_;
  std::vector<TierLevel> levels_;
  PerTier<Bytes> peak_{};
};

// Where a tensor's bytes are. It may share its blocks: more than its size is not found.
PerTier<Bytes> places_of(const PageTable& table, BlockRange blocks, Bytes size);

}  // namespace spillway
