#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "recorder/iteration.h"

namespace spillway {

// Finds one training iteration in what a script does and makes a trace of it.
//
// Anchors, the ends of optimizer steps, cut the script into segments; an iteration is the shortest row of segments that
// is repeated at once and in which every optimizer does its step that steps in turns with the others. When it does not
// come any more, the next one that is repeated takes its place. Memory is bounded: as many segments as two of the
// longest iterations have, or fewer of together `most_kernels` (an iteration of many long ones is not found), and for
// the iteration found a bounded number of durations for each kernel.
//
// Not thread-safe: the hook holds a lock around it.
class Recorder {
 public:
  static constexpr std::size_t kMostPeriods = 16;  // anchors in an iteration

  // iteration 0: the steady one; N: the one after the N-th anchor, as it is. An iteration of more kernels between two
  // anchors than `most_kernels` is not found.
  explicit Recorder(std::uint64_t iteration, std::size_t most_kernels = std::size_t{1} << 19)
      : wanted_(iteration), most_kernels_(most_kernels) {}

  void born_outside(Birth birth);  // made by something that is no kernel
  // Made by a thread that does not train, at any time beside those that do: it counts as born where it is used first.
  void born_elsewhere(Birth birth);
  void died_outside(StorageId storage);
  // By something that is no kernel of an iteration: who made it does not make these bytes.
  void written_outside(StorageId storage);
  void kernel(const KernelEvent& event);
  // So much of the time since the last kernel was not the script's on the host, and is no part of a gap.
  void leave_out(Nanos time) { left_out_ += time; }
  void anchor();
  // Where the device tells the times: of the segment that the latest anchor has ended, by KernelEvent::on_device.
  // Before each anchor. Kernels that launched nothing take no time; of none is known how long it took where there are
  // none.
  void took(const std::vector<KernelTime>& times);
  // The script turns out to mark its optimizer steps: what other anchors have found so far is void.
  void forget_anchors();

  // Whether finish() gives a trace, as far as the recorder can tell: later anchors may show it to be a part of one.
  bool has_iteration() const;
  // The trace as far as it is known. The failure says what was seen instead.
  Result<Trace> finish() const;
  // The same with what it takes to recognise it, and with averages that follow what changes instead of medians; nothing
  // if none has been found.
  std::optional<RecordedIteration> iteration() const;
  struct Progress {
    std::uint64_t iteration = 0;    // its number; 0: none has been found
    std::uint64_t repetitions = 0;  // in the averages
    std::uint64_t steps_each = 0;   // anchors in an iteration
    // Anchors of the iteration that the script is in, 0 at its start; nothing if the latest step was of no such one.
    std::optional<std::size_t> steps_done;
    Nanos average;  // of the kernels' durations, summed
  };
  Progress progress() const;
  // What comes now takes another time than what was: averages begin anew.
  void restart_averages();
  // True once after an iteration was found, and after it has been seen twice, four times, ... as often: worth saving,
  // for nobody knows how the script will end.
  bool take_news() { return std::exchange(news_, false); }

 private:
  void birth(const Birth& birth, std::uint64_t segment);
  void death(StorageId storage);
  void strip();
  void forget_old_segments();
  void search();
  static bool same_updates(const Segment& a, const Segment& b);
  std::vector<bool> covered_by(Group some) const;
  bool lacks_steps(Group some) const;
  void adopt(std::size_t period, Roles roles);
  bool is_outdated() const;
  void sample();
  struct Times {  // of a segment, in an iteration
    std::uint64_t segment;
    std::size_t skipped, place;
  };
  void add_repetition(Group repetition, std::size_t skipped);
  bool add_times(const std::vector<Times>& repetition);
  const Segment* segment_with(std::uint64_t number) const;
  std::string_view anchor_name() const { return marks_steps_ ? "optimizer step" : "backward pass"; }
  Result<Trace> finish_wanted() const;
  std::string describe() const;
  std::size_t steps_in_turns() const;
  std::vector<const Segment*> last(std::size_t count, std::size_t before_end) const;

  static constexpr std::size_t kPatience = 3;  // periods without a repetition until another iteration is looked for

  static constexpr std::uint64_t kLongestPause = 66;  // So each search meets another turn of any period.

  std::uint64_t wanted_;
  std::size_t most_kernels_;
  LiveStorages live_;
  SpareNodes<LiveStorages> spare_live_;
  SegmentBuilder builder_{0, 0};            // what is before the first anchor is no part of an iteration
  std::optional<SegmentBuilder> previous_;  // the segment before; may still be told of deaths after its last kernel
  std::deque<Segment> history_;             // complete ones, the latest last
  std::size_t history_kernels_ = 0;         // in these
  Nanos last_end_{}, stalled_at_last_end_{}, left_out_{};  // the last one since last_end_
  std::optional<Iteration> found_;
  std::vector<KernelTimes> times_;
  bool times_come_later_ = false;
  std::vector<Times> late_;  // of the latest repetition, where they are awaited
  std::uint64_t found_count_ = 0;
  std::uint64_t repetitions_ = 0;
  std::uint64_t averaged_ = 0;   // of these repetitions
  std::uint64_t missed_ = 0;     // anchors since the last one
  std::uint64_t fruitless_ = 0;  // searches among operators that all have come before
  std::uint64_t pause_ = 0;      // anchors until the next search, unless something new comes
  bool marks_steps_ = false;     // anchors are ends of optimizer steps; of backward passes otherwise
  bool news_ = false;
  bool something_updated_ = false;  // by some segment
  std::size_t pending_ = 0;         // of the latest segments may become the next repetition of the iteration found
};

}  // namespace spillway
