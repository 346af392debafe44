#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/kineto.h"

namespace spillway {

// What torch.cuda.memory._dump_snapshot() writes of all GPUs' allocators: when each memory was asked for, by which line
// of the script, and when it was given back; its bytes are those that were asked for. In nanoseconds of Unix time, to
// the microsecond. Not a word of kernels, and of what uses the memory.
Result<std::vector<KinetoMemory>> parse_memory_snapshot(std::string_view pickle, const std::string& where);

// The profile with the snapshot's memory instead of its own, on the profile's clock: both count Unix time, the profile
// from its baseTimeNanoseconds on.
Kineto with_snapshot(Kineto kineto, std::vector<KinetoMemory> memory, std::string snapshot);

}  // namespace spillway
