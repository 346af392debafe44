#pragma once

#include "base/result.h"
#include "base/units.h"

namespace spillway {

// The memory that this process could use at most: the machine's, or less where a control group says so (a container).
Result<Bytes> usable_memory();

// What of it nobody uses now.
Result<Bytes> free_memory();

}  // namespace spillway
