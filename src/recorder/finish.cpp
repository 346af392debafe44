#include <fmt/format.h>

#include <algorithm>

#include "recorder/recorder.h"

#include "base/check.h"

namespace spillway {
namespace {

constexpr std::string_view kRemedy =
    "let the script run more steps of one shape, or take one as it is with spillway trace --iteration N";

std::string plural(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : one.ends_with('s') ? "es" : "s");
}

}  // namespace

bool Recorder::has_iteration() const {
  return wanted_ != 0 ? builder_.number() > wanted_ : found_ && !lacks_steps(pointers(found_->segments));
}

std::optional<RecordedIteration> Recorder::iteration() const {
  if (wanted_ != 0 || !has_iteration()) return std::nullopt;
  std::vector<KernelTime> averages;
  for (const KernelTimes& times : times_) averages.push_back(times.average());
  RecordedIteration result = build_iteration(*found_, averages);
  result.number = found_count_;
  return result;
}

Recorder::Progress Recorder::progress() const {
  Progress progress;
  if (wanted_ != 0 || !has_iteration()) return progress;
  progress.iteration = found_count_;
  progress.repetitions = averaged_;
  progress.steps_each = found_->segments.size();
  CHECK(pending_ < found_->segments.size());
  if (pending_ > 0 || missed_ == 0) progress.steps_done = pending_;
  for (const KernelTimes& times : times_) progress.average += times.average().duration;
  return progress;
}

void Recorder::restart_averages() {
  averaged_ = 0;
  for (KernelTimes& times : times_) times.restart_average();
}

Result<Trace> Recorder::finish() const {
  if (wanted_ != 0) return finish_wanted();
  if (has_iteration()) {
    std::vector<KernelTime> medians;
    for (const KernelTimes& times : times_) medians.push_back(times.median());
    return build_iteration(*found_, medians).trace;
  }
  if (found_)
    return fail(Errc::unavailable,
                fmt::format("no whole training iteration repeated itself: what did, {} times, lacks the steps of other "
                            "parameters that are made in turns with its own; at most {} steps are one iteration; {}",
                            repetitions_, kMostPeriods, kRemedy));
  return fail(Errc::unavailable, fmt::format("no training iteration repeated itself: {}", describe()));
}

std::string Recorder::describe() const {
  if (builder_.number() == 0)
    return fmt::format(
        "the script made no optimizer step and no backward pass ({}, {} alive); only training has "
        "iterations",
        plural(builder_.segment().kernels_seen, "operator"), plural(live_.size(), "tensor"));
  constexpr std::uint64_t kNeeded = 3;
  if (builder_.number() < kNeeded)
    return fmt::format("the script made {} and at least {} are needed for two whole iterations; {}",
                       plural(builder_.number(), anchor_name()), kNeeded, kRemedy);
  std::string sizes;
  for (const Segment* segment : last(std::min<std::size_t>(history_.size() + 1, 6), 0)) {
    if (segment->kernels_seen > most_kernels_)
      sizes += fmt::format("{}{} (too many to keep)", sizes.empty() ? "" : ", ", segment->kernels_seen);
    else if (segment->number > 0)
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", segment->kernels.size());
  }
  const std::size_t turns = steps_in_turns();
  const auto both = last(2 * turns, 0);
  std::string comparison;
  if (std::ranges::none_of(both, [](const Segment* segment) { return segment->kernels.empty(); })) {
    const auto difference = match(Group(both).first(turns), Group(both).last(turns));
    const std::string which =
        turns == 1 ? "the last two" : fmt::format("the last {0} and the {0} before, of the same optimizers,", turns);
    comparison =
        fmt::format("; {} differ at {}", which, difference ? "nothing but their storages" : difference.error());
  }
  return fmt::format("the script made {}; the last ones ran {} operators{}; {}",
                     plural(builder_.number(), anchor_name()), sizes, comparison, kRemedy);
}

// After how many steps the same optimizers make theirs again, as before the last ones; 1 if that cannot be told.
std::size_t Recorder::steps_in_turns() const {
  for (std::size_t turns = 1; turns <= kMostPeriods && 2 * turns <= history_.size() + 1; ++turns)
    if (std::ranges::equal(last(turns, turns), last(turns, 0),
                           [](const Segment* before, const Segment* after) { return same_updates(*before, *after); }) &&
        !lacks_steps(last(turns, 0)))
      return turns;
  return 1;
}

Result<Trace> Recorder::finish_wanted() const {
  std::vector<const Segment*> all;
  for (const Segment& segment : history_) all.push_back(&segment);
  if (previous_) all.push_back(&previous_->segment());
  const auto segment = std::ranges::find(all, wanted_, &Segment::number);
  if (segment != all.end() && (*segment)->kernels_seen > most_kernels_)
    return fail(Errc::unavailable,
                fmt::format("iteration {} was asked for, but it has {} operators, and at most {} are "
                            "kept; ask for another one",
                            wanted_, (*segment)->kernels_seen, most_kernels_));
  if (segment == all.end() || (*segment)->kernels.empty())
    return fail(Errc::unavailable,
                fmt::format("iteration {} was asked for, which runs from {} {} to the next, but the script made {}; "
                            "ask for an earlier one or let the script run longer",
                            wanted_, anchor_name(), wanted_, plural(builder_.number(), anchor_name())));
  Iteration iteration;
  iteration.steady = false;
  iteration.segments.push_back(**segment);
  std::vector<KernelTime> times;
  for (const SegmentKernel& kernel : (*segment)->kernels) times.push_back({kernel.duration, kernel.gap});
  return build_iteration(iteration, times).trace;
}

}  // namespace spillway
