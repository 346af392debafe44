#pragma once

#include <bit>
#include <cstdint>

#include "base/units.h"

namespace spillway {

// How page faults are handled. A block of n granules faults n times, once for each. Widened, it faults ceil(log2 n) + 1
// times: each fault brings as much as is there already, as NVIDIA's tree of 64 KiB leaves does, which completes
// whatever is more than half there (UVMSmart).
struct FaultRates {
  Nanos latency;            // of each batch
  Nanos cost;               // of each fault
  Bytes granule{64 << 10};  // what one brings
  std::uint64_t batch = 1;  // the most in one batch
  bool widen = false;

  std::uint64_t faults_of(Bytes bytes) const {
    const std::uint64_t granules = (bytes.value + granule.value - 1) / granule.value;
    return widen && granules > 0 ? static_cast<std::uint64_t>(std::bit_width(granules - 1)) + 1 : granules;
  }
  // Of one service; its bytes move meanwhile.
  Nanos time(std::uint64_t faults) const { return latency * ((faults + batch - 1) / batch) + cost * faults; }
};

}  // namespace spillway
