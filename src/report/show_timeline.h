#pragma once

#include <string>

#include "timeline/run_timeline.h"

namespace spillway {

// A timeline for a terminal: how long it is, why kernels waited, the longest waits, what moved, and how full the tiers
// were.
std::string timeline_table(const RunTimeline& timeline);

// The same as one JSON object.
std::string timeline_json(const RunTimeline& timeline);

}  // namespace spillway
