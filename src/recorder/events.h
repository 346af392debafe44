#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "trace/trace.h"

// What the recorder is told about a running script. Nothing here knows PyTorch.
namespace spillway {

// One allocation of the script's. Numbered from 1 and never used again, unlike addresses.
struct StorageId {
  std::uint64_t value = 0;
  friend auto operator<=>(StorageId, StorageId) = default;
};

// A kernel uses the bytes [begin, end) of a storage that was there before it.
struct Touch {
  StorageId storage;
  Bytes begin, end;
  bool reads = false;
  bool writes = false;
  bool sparse = false;
  bool statistic = false;  // a running one: what the kernel makes does not depend on it
};

// A parameter or a state that an optimizer writes: those of several may lie in one storage.
struct Updated {
  StorageId storage;
  Bytes begin;
  friend auto operator<=>(const Updated&, const Updated&) = default;
};

// Of two steps, both ascending: an optimizer's have some of what they write in common, though each may leave some out;
// those of two optimizers have nothing.
inline bool are_of_one_optimizer(const std::vector<Updated>& a, const std::vector<Updated>& b) {
  if (a.empty() && b.empty()) return true;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (*x == *y) return true;
    *x < *y ? ++x : ++y;
  }
  return false;
}
inline void insert_ascending(std::vector<Updated>& all, Updated one) {
  const auto place = std::ranges::lower_bound(all, one);
  if (place == all.end() || *place != one) all.insert(place, one);
}

struct Birth {
  StorageId storage;
  Bytes bytes;
  TensorLabel label{};
};

// An outermost operator that has ended.
struct KernelEvent {
  std::string_view name;  // lives as long as the process
  Phase phase = Phase::other;
  bool updates = false;      // what it writes are parameters, or an optimizer's state
  bool replayable = false;   // but for statistics it writes to new memory only, and makes the same of the same
  std::uint64_t shapes = 0;  // a hash of its arguments' shapes and types
  const std::vector<Sizes>* shape_list = nullptr;  // these, if they are known; they live as long as the recorder
  Nanos start{}, end{};
  // Time in which any thread waited for memory, summed from the program's start: a thread that waits inside a kernel
  // may be another one than that which runs it.
  Nanos stalled_at_start{}, stalled_at_end{};
  std::vector<Touch> touches{};
  std::vector<Birth> births{};      // inside it, in order
  std::vector<StorageId> deaths{};  // inside it, in order
  // Of a GPU: its number among those whose times come later (Recorder::took).
  std::optional<std::uint32_t> on_device{};

  Nanos duration() const { return excess(excess(end, start), excess(stalled_at_end, stalled_at_start)); }
};

}  // namespace spillway

template <>
struct std::hash<spillway::StorageId> {
  std::size_t operator()(spillway::StorageId id) const noexcept { return std::hash<std::uint64_t>{}(id.value); }
};
