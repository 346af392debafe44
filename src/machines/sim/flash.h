#pragma once

#include <optional>

#include "base/ids.h"
#include "base/units.h"
#include "machines/sim/ftl.h"
#include "plan/flash_geometry.h"

namespace spillway {

// The simulated SSD's flash: which pages blocks and pieces of them have there, and what reading and writing costs.
class Flash {
 public:
  explicit Flash(const FlashGeometry& geometry);

  // The first bytes of a block or piece were there before anything was counted; false: there is no room.
  bool place(BlockId id, Bytes bytes);
  // They are written; nothing: there is no room. Nanoseconds: (h + m) pages at the rate of writing, m at the rate of
  // reading, n times the time to erase.
  std::optional<double> write(BlockId id, Bytes bytes);
  double read_ns(Bytes bytes) const;
  void discard(BlockId id, Bytes bytes);

  const FlashWork& work() const { return work_; }                               // so far
  std::uint32_t pages(Bytes bytes) const { return pages_of({}, bytes).count; }  // that they take
  std::uint32_t valid_pages(BlockId block) const { return ftl_.valid_pages(block); }

 private:
  PageRun pages_of(BlockId id, Bytes bytes) const;

  FlashGeometry geometry_;
  Ftl ftl_;
  FlashWork work_;
};

}  // namespace spillway
