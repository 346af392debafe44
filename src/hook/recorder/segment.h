#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hook/recorder/events.h"

namespace spillway {

// A storage as one segment sees it.
struct SegmentStorage {
  StorageId id;
  Bytes bytes;
  std::uint64_t birth_segment = 0;
  TensorLabel label{};
};

struct SegmentAccess {
  std::uint32_t storage;  // index into Segment::storages
  Bytes begin, end;
  bool reads, writes, sparse;
};

struct SegmentKernel {
  std::string_view name;
  Phase phase;
  bool updates;  // parameters, or an optimizer's state
  std::uint64_t shapes;
  Nanos duration, gap;
  std::vector<SegmentAccess> accesses;
  std::vector<std::uint32_t> births;
  std::vector<std::uint32_t> frees;  // inside it, or between it and the next kernel
};

// What happened between two anchors (ends of optimizer steps). Complete in itself, so that old ones can be dropped.
struct Segment {
  std::uint64_t number = 0;        // 0: before the first anchor
  std::uint64_t kernels_seen = 0;  // more than `kernels` holds if those were too many, and then it holds none
  std::vector<SegmentKernel> kernels;
  std::vector<SegmentStorage> storages;
  std::uint64_t operators = 0;   // hash of what they do, without the memory that they do it with
  std::vector<Updated> updates;  // ascending: tells optimizers apart

  bool born_here(std::uint32_t storage) const { return storages[storage].birth_segment == number; }
};

// Collects one segment: `most` kernels, since a script may do without optimizer steps for days.
class SegmentBuilder {
 public:
  SegmentBuilder(std::uint64_t number, std::size_t most) : most_(most) { segment_.number = number; }

  bool empty() const { return segment_.kernels.empty(); }
  std::uint64_t number() const { return segment_.number; }
  void add(const KernelEvent& event, Nanos gap, const std::unordered_map<StorageId, SegmentStorage>& live);
  // The storage died after the last kernel. Needs one.
  void died(const SegmentStorage& storage);
  const Segment& segment() const { return segment_; }
  Segment& segment() { return segment_; }

 private:
  std::uint32_t index_of(const SegmentStorage& storage);

  std::size_t most_;
  Segment segment_;
  std::unordered_map<StorageId, std::uint32_t> indices_;
};

// How many kernels at the start are no part of training, such as an evaluation, something printed or the views of a
// state_dict: they write nothing that was there before, and nobody later in the segment uses what they made.
std::size_t idle_prefix(const Segment& segment);

// For Segment::operators.
std::uint64_t hash_of_operators(const Segment& segment);

// Drops that many kernels. Storages from before that died during them are returned: they died after the segment before.
std::vector<SegmentStorage> drop_prefix(Segment& segment, std::size_t count);

}  // namespace spillway
