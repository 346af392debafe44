#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/units.h"
#include "plan/machine_model.h"

namespace spillway {

// What a machine's flash comes to, all drives together: striped over, they are one drive of so many times the channels.
// A superblock is one flash block of every plane: what is written and erased together.
struct FlashGeometry {
  std::uint32_t superblocks = 0;
  std::uint32_t pages = 0;  // of a superblock
  std::uint32_t reserve = 0;
  Bytes page;
  double read_rate = 0, program_rate = 0;  // in bytes per second
  Nanos erase_time;

  std::uint64_t most_pages() const { return std::uint64_t{superblocks - reserve} * pages; }  // that it can hold
};

// The machine must have flash and an SSD. An error begins with the key that is wrong for the others.
Result<FlashGeometry> flash_geometry(const MachineModel& machine);

// Until the flash is worn out: a drive endures `dwpd` times its capacity each day for five years (1825 days).
double years_at(const MachineModel& machine, double bytes_per_second);

}  // namespace spillway
