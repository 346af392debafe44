#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/spare_nodes.h"
#include "recorder/events.h"

namespace spillway {

// A storage as one segment sees it.
struct SegmentStorage {
  StorageId id;
  Bytes bytes;
  std::uint64_t birth_segment = 0;
  TensorLabel label{};
  bool written_outside = false;  // after its first kernel here, by something that is none of the segment's
};

struct SegmentAccess {
  std::uint32_t storage;  // index into Segment::storages
  Bytes begin, end;
  bool reads, writes, sparse, statistic;
};

// Where in a list of all kernels of the segment one's own are.
struct Slice {
  std::uint32_t begin = 0, end = 0;
};

struct SegmentKernel {
  std::string_view name;
  Phase phase;
  bool updates;  // parameters, or an optimizer's state
  bool replayable;
  std::uint64_t shapes;
  const std::vector<Sizes>* shape_list;
  Nanos duration, gap;
  std::optional<std::uint32_t> on_device;  // as in KernelEvent
  Slice accesses, births, frees;
};

// What happened between two anchors (ends of optimizer steps). Complete in itself, so that old ones can be dropped.
struct Segment {
  std::uint64_t number = 0;        // 0: before the first anchor
  bool awaits_times = false;       // Its kernels' times come later.
  std::uint64_t kernels_seen = 0;  // more than `kernels` holds if those were too many, and then it holds none
  std::vector<SegmentKernel> kernels;
  std::vector<SegmentStorage> storages;
  // Of all kernels, one after the other: lists of their own would be thousands to make and to free in each iteration.
  std::vector<SegmentAccess> accesses;
  std::vector<std::uint32_t> births, frees;
  std::uint64_t operators = 0;   // hash of what they do, without the memory that they do it with
  std::vector<Updated> updates;  // ascending: tells optimizers apart

  bool born_here(std::uint32_t storage) const { return storages[storage].birth_segment == number; }
  std::span<const SegmentAccess> accesses_of(const SegmentKernel& kernel) const {
    return std::span(accesses).subspan(kernel.accesses.begin, kernel.accesses.end - kernel.accesses.begin);
  }
  std::span<const std::uint32_t> births_of(const SegmentKernel& kernel) const {
    return std::span(births).subspan(kernel.births.begin, kernel.births.end - kernel.births.begin);
  }
  // Inside it, or between it and the next kernel.
  std::span<const std::uint32_t> frees_of(const SegmentKernel& kernel) const {
    return std::span(frees).subspan(kernel.frees.begin, kernel.frees.end - kernel.frees.begin);
  }
  // Storages that died after the last kernel. Needs one.
  void freed_at_the_end(std::uint32_t storage) {
    CHECK(!kernels.empty() && storage < storages.size());
    frees.push_back(storage);
    kernels.back().frees.end = static_cast<std::uint32_t>(frees.size());
  }
};

// A storage that is alive, and where the segment that has listed it last has it.
struct LiveStorage {
  SegmentStorage storage;
  std::uint64_t listed_by = std::numeric_limits<std::uint64_t>::max();  // its number
  std::uint32_t index = 0;
};
using LiveStorages = std::unordered_map<StorageId, LiveStorage>;

// Collects one segment: `most` kernels, since a script may do without optimizer steps for days.
class SegmentBuilder {
 public:
  SegmentBuilder(std::uint64_t number, std::size_t most) : most_(most) { segment_.number = number; }
  // About as much comes as there was in that one.
  void expect(const Segment& before);

  bool empty() const { return segment_.kernels.empty(); }
  std::uint64_t number() const { return segment_.number; }
  void add(const KernelEvent& event, Nanos gap, LiveStorages& live);
  void written_outside(const LiveStorage& storage);
  // The storage died after the last kernel. Needs one.
  void died(LiveStorage& storage);
  const Segment& segment() const { return segment_; }
  Segment& segment() { return segment_; }

 private:
  std::uint32_t index_of(LiveStorage& storage);

  std::size_t most_;
  Segment segment_;
};

// How many kernels at the start are no part of training, such as an evaluation or something printed: they write nothing
// that was there before, nobody later in the segment uses what they made, and little of it lives on. Averages of the
// weights do.
std::size_t idle_prefix(const Segment& segment);

// CHECKs that the kernels' slices are all that there is, one after the other, and name storages that there are.
void check_segment(const Segment& segment);

// For Segment::operators.
std::uint64_t hash_of_operators(const Segment& segment);

// Drops that many kernels, not all. Storages from before that died during them are returned: they died after the
// segment before.
std::vector<SegmentStorage> drop_prefix(Segment& segment, std::size_t count);

}  // namespace spillway
