#include "runtime/memory_figures.h"

#include "machines/real/clock.h"

namespace spillway {

MemoryFigures figures_of(const RealMachine& machine) {
  const MachineStats& counted = machine.stats();
  MemoryFigures figures{.faults = counted.faults(),
                        .first_touches = counted.first_touches(),
                        .dropped_clean = counted.dropped_clean(),
                        .unseen_writes = counted.unseen_writes(),
                        .written = counted.written(),
                        .stall = machine.stall().total(now())};
  for (const Tier from : kTiers) {
    figures.held[from] = counted.held(from);
    figures.peak[from] = counted.peak(from);
    for (const Tier to : kTiers)
      if (from != to) figures.moved(from, to) = counted.moved(from, to);
  }
  return figures;
}

}  // namespace spillway
