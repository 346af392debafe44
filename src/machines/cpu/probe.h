#pragma once

#include <string>

#include "base/result.h"
#include "base/units.h"
#include "machines/cpu/eviction_method.h"

namespace spillway {

// What this machine does as a "device" of paged memory with an SSD behind it: the numbers of a machine file.
struct MachineProbe {
  EvictionMethod method = EvictionMethod::copy;
  Bytes memory;                               // of the machine
  BytesPerSecond copy_rate;                   // memory to memory
  Nanos fault;                                // from a touch until the thread goes on, when a block's frame is at hand
  Bytes fault_bytes;                          // what one fault brings: a block
  BytesPerSecond ssd_read, ssd_write;         // blocks, many at a time
  Nanos ssd_read_latency, ssd_write_latency;  // one small transfer
  Bytes ssd_free;
};

// Measures for at most 10 seconds, in files of at most 256 MiB that are gone afterwards. Fails where page faults cannot
// be served or the directory cannot be spilled to.
Result<MachineProbe> probe_machine(const std::string& ssd_directory);

}  // namespace spillway
