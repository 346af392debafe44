#include "analysis/timeline.h"

namespace spillway {

Timeline ideal_timeline(const Trace& trace) {
  Timeline timeline;
  timeline.start.reserve(trace.kernels.size());
  timeline.end.reserve(trace.kernels.size());
  for (const Kernel& kernel : trace.kernels) {
    timeline.start.push_back(timeline.iteration + kernel.gap);
    timeline.iteration = timeline.start.back() + kernel.duration;
    timeline.end.push_back(timeline.iteration);
  }
  return timeline;
}

Nanos time_of(const InactivePeriod& period, const Timeline& timeline) {
  const Nanos next_use = timeline.start_of(period.before);
  return (period.wraps ? next_use + timeline.iteration : next_use) - timeline.end_of(period.after);
}

}  // namespace spillway
