#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "timeline/run_timeline.h"

namespace spillway {

// All pages have this near their beginning, by which they are known again.
inline constexpr std::string_view kPageMark = R"(<meta name="generator" content="Spillway">)";

// One HTML file that draws the timeline, with its data and scripts inside; it needs no network.
std::string page_of(const RunTimeline& timeline);

// Timelines of one trace on one machine under several policies, on one clock; `infeasible`: policies that have none.
std::string comparison_page_of(const std::vector<RunTimeline>& timelines, const std::vector<std::string>& infeasible);

// The report of a run, as `spillway run --json` writes it. The error names `where`, and what it lacks.
Result<std::string> report_page_of(const std::string& json, const std::string& where);

// What ui.perfetto.dev and chrome://tracing open: a JSON object with `traceEvents`. A track for the device's kernels,
// one for their waits, two for each link (urgent, planned), a counter for each tier, and an arrow from each transfer up
// to the kernel that uses its tensor next.
std::string trace_events_of(const RunTimeline& timeline);
inline constexpr std::string_view kTraceEventsBegin = R"({"displayTimeUnit":"ms","traceEvents":[)";

}  // namespace spillway
