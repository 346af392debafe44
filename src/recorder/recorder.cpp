#include "recorder/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <ranges>

#include "base/check.h"

namespace spillway {
namespace {

constexpr std::uint64_t kNotUsedYet = std::numeric_limits<std::uint64_t>::max();  // instead of a segment's number

}  // namespace

void Recorder::birth(const Birth& birth, std::uint64_t segment) {
  spare_live_.put(live_, birth.storage)->second =
      LiveStorage{{.id = birth.storage, .bytes = birth.bytes, .birth_segment = segment, .label = birth.label}};
}

void Recorder::born_outside(Birth newborn) { birth(newborn, builder_.number()); }

void Recorder::born_elsewhere(Birth newborn) { birth(newborn, kNotUsedYet); }

void Recorder::death(StorageId storage) {
  if (const auto known = live_.find(storage); known != live_.end()) spare_live_.erase(live_, known);
}

void Recorder::died_outside(StorageId storage) {
  const auto known = live_.find(storage);
  if (known == live_.end()) return;
  if (!builder_.empty())
    builder_.died(known->second);
  else if (previous_ && !previous_->empty())
    previous_->died(known->second);
  spare_live_.erase(live_, known);
}

void Recorder::written_outside(StorageId storage) {
  if (const auto known = live_.find(storage); known != live_.end()) builder_.written_outside(known->second);
}

void Recorder::kernel(const KernelEvent& event) {
  for (const Birth& newborn : event.births) birth(newborn, builder_.number());
  for (const Touch& touch : event.touches)
    if (const auto used = live_.find(touch.storage);
        used != live_.end() && used->second.storage.birth_segment == kNotUsedYet)
      used->second.storage.birth_segment = builder_.number();
  const Nanos waited = excess(event.stalled_at_start, stalled_at_last_end_);
  const Nanos gap = last_end_.value == 0 ? Nanos{} : excess(excess(event.start, last_end_), waited + left_out_);
  builder_.add(event, gap, live_);
  last_end_ = event.end;
  stalled_at_last_end_ = event.stalled_at_end;
  left_out_ = {};
  for (const StorageId dead : event.deaths) death(dead);
}

void Recorder::anchor() {
  // The segment before is complete only now: tensors die between its last kernel and the next one's start.
  const bool first = builder_.number() == 0;
  const bool have_wanted = wanted_ != 0 && builder_.number() > wanted_ + 1;
  if (previous_ && !have_wanted) {
    history_.push_back(std::move(previous_->segment()));
    history_kernels_ += history_.back().kernels.size();
    forget_old_segments();
  }
  strip();
  builder_.segment().operators = hash_of_operators(builder_.segment());
  builder_.segment().awaits_times = times_come_later_;
  previous_.emplace(std::move(builder_));
  builder_ = SegmentBuilder(previous_->number() + 1, most_kernels_);
  builder_.expect(previous_->segment());
  if (first) return;
  if (wanted_ != 0) {
    news_ |= previous_->number() == wanted_ + 1;  // Now what died after its last kernel is known, too.
    return;
  }
  something_updated_ |= !previous_->segment().updates.empty();
  sample();
  search();
}

// Those that the iteration found could be seen again in stay.
void Recorder::forget_old_segments() {
  const std::size_t least = found_ ? 2 * found_->segments.size() : 2;
  while (history_.size() > 2 * kMostPeriods || (history_.size() > least && history_kernels_ > most_kernels_)) {
    history_kernels_ -= history_.front().kernels.size();
    history_.pop_front();
  }
}

void Recorder::strip() {
  Segment& segment = builder_.segment();
  if (segment.number == 0 || wanted_ != 0) return;
  const std::size_t idle = idle_prefix(segment);
  if (idle == 0) return;
  const std::vector<SegmentStorage> died = drop_prefix(segment, idle);
  if (history_.empty() || history_.back().kernels.empty()) return;
  Segment& before = history_.back();
  std::map<StorageId, std::uint32_t> places;
  for (std::uint32_t place = 0; place < before.storages.size(); ++place)
    places.emplace(before.storages[place].id, place);
  for (const SegmentStorage& storage : died) {
    const auto [known, is_new] = places.emplace(storage.id, static_cast<std::uint32_t>(before.storages.size()));
    if (is_new) before.storages.push_back(storage);
    before.freed_at_the_end(known->second);
  }
}

// `count` segments, the last of which has `before_end` later ones; null pointers never.
std::vector<const Segment*> Recorder::last(std::size_t count, std::size_t before_end) const {
  std::vector<const Segment*> all;
  for (const Segment& segment : history_) all.push_back(&segment);
  all.push_back(&previous_->segment());
  CHECK(count + before_end <= all.size());
  const auto end = all.end() - static_cast<std::ptrdiff_t>(before_end);
  return {end - static_cast<std::ptrdiff_t>(count), end};
}

bool Recorder::same_updates(const Segment& a, const Segment& b) { return are_of_one_optimizer(a.updates, b.updates); }

// Of the segments kept, the latest last, whether each makes the same step as one of these. Those of which nothing is
// known do.
std::vector<bool> Recorder::covered_by(Group some) const {
  std::vector<bool> covered;
  for (const Segment* seen : last(history_.size() + 1, 0))
    covered.push_back(seen->number == 0 || seen->kernels.empty() ||
                      std::ranges::any_of(some, [&](const Segment* one) { return same_updates(*seen, *one); }));
  return covered;
}

// Whether another optimizer steps in turns with these, and so belongs to their iteration: its turn has begun twice, not
// more than an iteration apart, and is not long overdue. Who came by once, before or after, or has long turns, trains
// something else.
bool Recorder::lacks_steps(Group some) const {
  const bool updates_nothing =
      std::ranges::all_of(some, [](const Segment* segment) { return segment->updates.empty(); });
  if (updates_nothing && something_updated_) return true;
  const std::vector<const Segment*> seen = last(history_.size() + 1, 0);
  const std::vector<bool> covered = covered_by(some);
  // Of the first segment that is kept it is only known whether it begins a turn if it is the script's first one.
  const auto begins = [&](std::size_t at) {
    return !covered[at] && (at > 0 ? covered[at - 1] : seen[at]->number <= 1);
  };
  for (std::size_t i = 0; i < seen.size(); ++i)
    for (std::size_t j = i + 2; j < seen.size() && j <= i + kMostPeriods && begins(i); ++j) {
      if (!begins(j) || !same_updates(*seen[i], *seen[j])) continue;
      if (seen.size() - 1 - j <= kPatience * (j - i)) return true;
      break;
    }
  return false;
}

void Recorder::search() {
  const std::size_t available = history_.size() + (history_.empty() || history_.front().number > 0 ? 1 : 0);
  if (std::ranges::find(history_, previous_->segment().operators, &Segment::operators) == history_.end())
    fruitless_ = pause_ = 0;
  if (found_ && !is_outdated() && !lacks_steps(pointers(found_->segments))) return;
  if (pause_ > 0) {
    --pause_;
    return;
  }
  for (std::size_t period = 1; period <= kMostPeriods && 2 * period <= available; ++period) {
    const auto first = last(period, period);
    const auto second = last(period, 0);
    const bool starts_with_optimizer = std::ranges::all_of(
        second.front()->kernels, [](const SegmentKernel& kernel) { return kernel.phase == Phase::optimizer; });
    if (starts_with_optimizer || first.front()->kernels.size() < second.front()->kernels.size()) continue;
    if (std::ranges::any_of(second, [](const Segment* segment) { return segment->kernels.empty(); })) continue;
    if (std::ranges::any_of(first, [](const Segment* segment) { return segment->kernels.empty(); })) continue;
    if (found_ && lacks_steps(second)) continue;
    const std::size_t skipped = first.front()->kernels.size() - second.front()->kernels.size();
    const std::ptrdiff_t cut = skipped > 0 ? 1 : 0;
    if (!std::equal(first.begin() + cut, first.end(), second.begin() + cut,
                    [](const Segment* a, const Segment* b) { return a->operators == b->operators; }))
      continue;
    auto roles = match(first, second, {.skipped_first = skipped});
    if (!roles) continue;
    adopt(period, *std::move(roles));
    add_repetition(first, skipped);
    add_repetition(second, 0);
    return;
  }
  // Every number of segments has had its turn, and each of them is compared to its end where only memory differs.
  if (++fruitless_ <= 2 * kMostPeriods) return;
  pause_ = std::min(fruitless_ - 2 * kMostPeriods, kLongestPause);
}

bool Recorder::is_outdated() const { return missed_ > kPatience * found_->segments.size(); }

void Recorder::adopt(std::size_t period, Roles roles) {
  found_.emplace();
  ++found_count_;
  missed_ = 0;
  fruitless_ = 0;
  averaged_ = 0;
  late_.clear();
  for (const Segment* segment : last(period, period)) found_->before.push_back(*segment);
  std::size_t kernels = 0;
  for (const Segment* segment : last(period, 0)) {
    found_->segments.push_back(*segment);
    kernels += segment->kernels.size();
  }
  found_->roles = std::move(roles);
  times_.assign(kernels, {});
  repetitions_ = 2;
  news_ = true;
  pending_ = 0;
}

// Whether the latest segment goes on repeating the iteration found; if so its times count once the iteration is whole.
void Recorder::sample() {
  if (!found_) return;
  ++missed_;
  const auto iteration = pointers(found_->segments);
  const auto surplus = [&](const Segment& start) {  // kernels at a start that are no part of it
    const std::size_t seen = start.kernels.size(), expected = iteration.front()->kernels.size();
    return seen > expected ? seen - expected : 0;
  };
  // Where it does not go on, the last few may still be the first ones of another repetition.
  std::size_t length = pending_ + 1;
  for (; length > 0; --length) {
    const auto latest = last(length, 0);
    if (match(Group(iteration).first(length), latest,
              {.skipped_second = surplus(*latest.front()), .period = iteration.size()}))
      break;
  }
  pending_ = length;
  if (pending_ < iteration.size()) return;
  const auto repetition = last(pending_, 0);
  add_repetition(repetition, surplus(*repetition.front()));
  pending_ = 0;
  missed_ = 0;
  news_ |= std::has_single_bit(++repetitions_);
}

void Recorder::add_repetition(Group repetition, std::size_t skipped) {
  std::vector<Times> times;
  for (std::size_t place = 0; const Segment* segment : repetition) {
    times.push_back({segment->number, skipped, place});
    place += segment->kernels.size() - std::exchange(skipped, 0);
  }
  if (!add_times(times)) late_ = std::move(times);
}

// False: some are awaited.
bool Recorder::add_times(const std::vector<Times>& repetition) {
  for (const Times& times : repetition)
    if (segment_with(times.segment)->awaits_times) return false;
  for (const Times& times : repetition) {
    const auto kernels = std::span(segment_with(times.segment)->kernels).subspan(times.skipped);
    for (std::size_t k = 0; k < kernels.size(); ++k) times_[times.place + k].add({kernels[k].duration, kernels[k].gap});
  }
  ++averaged_;
  return true;
}

// Of the latest repetition, or the one before it. They stay as long as that.
const Segment* Recorder::segment_with(std::uint64_t number) const {
  if (previous_->number() == number) return &previous_->segment();
  const auto found = std::ranges::find(history_, number, &Segment::number);
  CHECK(found != history_.end());
  return &*found;
}

void Recorder::took(const std::vector<KernelTime>& times) {
  times_come_later_ = true;
  if (!previous_) return;
  Segment& segment = previous_->segment();
  for (SegmentKernel& kernel : segment.kernels) {
    const bool is_known = kernel.on_device && *kernel.on_device < times.size();
    kernel.duration = is_known ? times[*kernel.on_device].duration : Nanos{};
    kernel.gap = is_known ? times[*kernel.on_device].gap : Nanos{};
  }
  segment.awaits_times = false;
  if (found_ && !late_.empty()) CHECK(add_times(std::exchange(late_, {})));
}

void Recorder::forget_anchors() {
  marks_steps_ = true;
  // What was there before is told apart by segment numbers; it all becomes "from before".
  for (auto& [id, live] : live_) {
    const bool is_used = live.storage.birth_segment != kNotUsedYet;
    live = {.storage = live.storage};
    if (is_used) live.storage.birth_segment = 0;
  }
  builder_ = SegmentBuilder(0, 0);
  previous_.reset();
  history_.clear();
  history_kernels_ = 0;
  found_.reset();
  late_.clear();
  something_updated_ = false;
  pending_ = 0;
}

}  // namespace spillway
