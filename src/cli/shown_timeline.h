#pragma once

#include <string>

#include "base/result.h"
#include "cli/shown_file.h"
#include "timeline/run_timeline.h"

namespace spillway {

struct TimelineChoice {
  std::string trace = {};       // of a journal or a plan; empty: the one beside it
  std::string iterations = {};  // of a journal, "3" or "3-8"; empty: all that a picture can hold
};

// What is drawn of a file. The error says why it cannot be drawn, and what can.
Result<RunTimeline> timeline_of(const ShownFile& file, const TimelineChoice& choice);

}  // namespace spillway
