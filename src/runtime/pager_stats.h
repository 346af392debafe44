#pragma once

#include <cstdint>

#include "base/units.h"
#include "machines/cpu/cpu_machine.h"
#include "memory/tier.h"

namespace spillway {

struct PagerStats {
  std::uint64_t faults = 0;  // of blocks that had bytes
  std::uint64_t first_touches = 0;
  PerLink<Bytes> moved;
  Bytes written;                    // to the SSD, also by moves that were given up
  Bytes dropped_clean;              // left for the SSD without being written, since it had the same bytes
  std::uint64_t unseen_writes = 0;  // blocks that should have been dropped so, and had changed
  PerTier<Bytes> held, peak;
  Nanos stall;  // time in which at least one thread waited
};

// So far. Any thread.
PagerStats stats_of(const CpuMachine& machine);

}  // namespace spillway
