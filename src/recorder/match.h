#pragma once

#include <expected>
#include <span>
#include <string>
#include <unordered_map>

#include "recorder/segment.h"

namespace spillway {

// Consecutive segments that may be one iteration.
using Group = std::span<const Segment* const>;

// Which storage of the second group plays the part of which of the first.
using Roles = std::unordered_map<StorageId, StorageId>;

// Whether two groups do the same: the same operators on the same shapes and storages. Storages from before both must be
// the same ones, or be reborn in each iteration (both came from the iteration before), or be inputs, which nobody
// writes. Of the same one they may use other parts of one size, but for what an update writes. The failure says
// where the operators first differ or, if they do not, the memory.
struct MatchOptions {
  std::size_t skipped_first = 0, skipped_second = 0;  // kernels at the groups' starts that are no part of it
  std::size_t period = 0;                             // segments of an iteration, if the groups are its first ones only
};
std::expected<Roles, std::string> match(Group first, Group second, MatchOptions options = {});

}  // namespace spillway
