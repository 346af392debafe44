#include "timeline/run_timeline.h"

#include <algorithm>
#include <array>

#include "analysis/lifetimes.h"
#include "analysis/timeline.h"
#include "trace/text_of.h"

namespace spillway {

std::vector<TierLevel> thinned(const std::vector<TierLevel>& levels, const PerTier<Bytes>& peak) {
  std::vector<TierLevel> kept;
  const auto is_away = [&](const TierLevel& one) {
    return std::ranges::any_of(kTiers, [&](Tier tier) {
      const Bytes now = one.bytes[tier], before = kept.back().bytes[tier];
      return now != before && excess(std::max(now, before), std::min(now, before)) * kLevelSteps >= peak[tier];
    });
  };
  for (const TierLevel& one : levels)
    if (kept.empty() || is_away(one)) kept.push_back(one);
  if (!levels.empty() && kept.back() != levels.back()) kept.push_back(levels.back());
  return kept;
}

std::vector<PlayedTransfer> merged(const std::vector<PlayedTransfer>& ended) {
  std::vector<PlayedTransfer> result;
  std::array<std::size_t, 3 * 3 * 3 * 2> last{};  // by way, urgency and whether it is copied: its place plus one
  for (const PlayedTransfer& one : ended) {
    std::size_t& place = last[((static_cast<std::size_t>(one.from) * 3 + static_cast<std::size_t>(one.to)) * 3 +
                               static_cast<std::size_t>(one.urgency)) *
                                  2 +
                              (one.copied ? 1 : 0)];
    if (place > 0) {
      PlayedTransfer& before = result[place - 1];
      const bool follows = before.tensor == one.tensor && before.end == one.begin && before.cancelled == one.cancelled;
      if (follows && one.tensor && !one.goes_on) {
        before.bytes += one.bytes;
        before.moves += one.moves;
        before.end = one.end;
        continue;
      }
    }
    result.push_back(one);
    place = result.size();
  }
  std::ranges::stable_sort(result, {}, &PlayedTransfer::begin);
  return result;
}

RunTimeline unlimited_timeline(const Trace& trace, const std::string& hash) {
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  const Timeline ideal = ideal_timeline(trace);
  RunTimeline result{
      .trace_name = titled_name(trace), .trace_hash = hash, .iteration = ideal.iteration, .ideal = ideal.iteration};
  result.heading = "with all memory it wants";
  result.shows_waits = false;
  Bytes live;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    const bool is_there = lifetimes.tensors[t].alive_at_start;
    result.tensors.push_back({.name = tensor.name,
                              .bytes = tensor.bytes,
                              .kind = tensor.kind,
                              .at_start = {.device = is_there ? tensor.bytes : Bytes{}}});
    if (is_there) live += tensor.bytes;
  }
  std::vector<TierLevel> levels{{{}, {.device = live}}};
  for (std::uint32_t k = 0; k < trace.kernels.size(); ++k) {
    const Kernel& kernel = trace.kernels[k];
    PlayedKernel played{.name = kernel.name,
                        .kernel = {k},
                        .phase = kernel.phase,
                        .ready = ideal.start[k],
                        .start = ideal.start[k],
                        .end = ideal.end[k]};
    for (const Access& read : kernel.reads) played.reads.push_back(read.tensor);
    for (const Access& write : kernel.writes) played.writes.push_back(write.tensor);
    result.kernels.push_back(std::move(played));
    for (const TensorId born : lifetimes.births[k]) {
      result.lives.push_back({ideal.start[k], born, true});
      live += trace[born].bytes;
    }
    levels.push_back({ideal.start[k], {.device = live}});
    result.peak.device = std::max(result.peak.device, live);
    for (const TensorId dead : lifetimes.deaths[k]) {
      result.lives.push_back({ideal.end[k], dead, false});
      live -= trace[dead].bytes;
    }
    levels.push_back({ideal.end[k], {.device = live}});
  }
  result.levels = thinned(levels, result.peak);
  return result;
}

std::string heading_of(const RunTimeline& timeline) {
  return timeline.heading.empty() ? timeline.policy + " on " + timeline.machine : timeline.heading;
}

std::string_view to_text(Stall stall) {
  constexpr std::array kWords{"none", "asked_late", "on_its_way", "behind_others", "no_room", "other"};
  return kWords[static_cast<std::size_t>(stall)];
}

std::string_view to_text(Urgency urgency) {
  constexpr std::array kWords{"fault", "need", "plan"};
  return kWords[static_cast<std::size_t>(urgency)];
}

}  // namespace spillway
