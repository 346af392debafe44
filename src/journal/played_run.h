#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "timeline/run_timeline.h"
#include "trace/trace.h"

namespace spillway {

// Iterations of a run, counted from 1. What is before the first optimizer step has ended is of iteration 1.
struct IterationRange {
  std::uint64_t first = 1, last = UINT64_MAX;
};

struct PlayedRunOptions {
  // Nothing: all, or if those have more kernels than this, as many of the last ones as have not.
  std::optional<IterationRange> iterations = {};
  std::uint64_t most_kernels = 20'000;
  const Trace* names = nullptr;  // the trace of the run's iteration, if there is one
};

// What happened in a run that has a journal, as far as its loop was told: the decisions are made again, so that what
// the tiers held is known. What the journal cannot show (the rest of one that is damaged, names) is said in a note.
// Fails where it does not even begin, or has no such iteration.
Result<RunTimeline> played_run(const std::string& journal, const PlayedRunOptions& options = {});

}  // namespace spillway
