#include "runtime/pager_stats.h"

#include "machines/cpu/clock.h"

namespace spillway {

PagerStats stats_of(const CpuMachine& machine) {
  const CpuStats& counted = machine.stats();
  PagerStats stats{.faults = counted.faults(),
                   .first_touches = counted.first_touches(),
                   .moved = {},
                   .written = counted.written(),
                   .dropped_clean = counted.dropped_clean(),
                   .unseen_writes = counted.unseen_writes(),
                   .held = {},
                   .peak = {},
                   .stall = machine.stall().total(now())};
  for (const Tier from : kTiers) {
    stats.held[from] = counted.held(from);
    stats.peak[from] = counted.peak(from);
    for (const Tier to : kTiers)
      if (from != to) stats.moved(from, to) = counted.moved(from, to);
  }
  return stats;
}

}  // namespace spillway
