#pragma once

#include <cstdint>

#include "base/result.h"
#include "hook/pager/pager.h"

namespace spillway {

// The budgets in blocks, checked against what this machine has; errors name the value, the limit and the remedy.
struct PagerSize {
  std::uint32_t device_frames = 0;
  std::uint32_t host_frames = 0;
};
Result<PagerSize> size_of(const PagerConfig& config);

// How many blocks of addresses to reserve: twice what all tiers can hold, since holes between tensors cost addresses.
std::uint32_t range_blocks(PagerSize size, std::uint32_t ssd_slots);

}  // namespace spillway
