#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/units.h"

namespace spillway {

// 16 blocks for each CPU that we may run on: each may have a thread that touches tensors, and one instruction of a
// thread must find all its blocks at once.
Bytes least_device_budget();

// The budgets in blocks, checked against what this machine has; errors name the option, the limit and the remedy.
struct FrameCounts {
  std::uint32_t device = 0, host = 0;
};
Result<FrameCounts> frames_for(Bytes device, Bytes host, bool check_least);

// How many blocks of addresses to reserve: twice what all tiers can hold, since holes between tensors cost addresses,
// and four times where that is little.
std::uint32_t range_blocks(FrameCounts frames, std::uint32_t ssd_slots);

}  // namespace spillway
