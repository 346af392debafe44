#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/units.h"

namespace spillway {

// A stream that has been given launches up to that one.
struct StreamUse {
  std::uint32_t stream = 0;
  std::uint64_t launch = 0;
  friend bool operator==(const StreamUse&, const StreamUse&) = default;
};

// Memory whose tensors are dead, and what may still use it on the device. Its next owner's launches come after those:
// on the same stream by themselves, on another one if that is made to wait. A plain value; offsets only.
class FreedMemory {
 public:
  // All that uses these bytes is among these launches of each stream, or before; a stream at most once.
  void freed(std::uint64_t begin, Bytes bytes, std::vector<StreamUse> uses);
  // They have an owner again, whose launches come on this stream: what of other streams they must come after, the
  // latest of each. Nothing is known of these bytes any more.
  std::vector<StreamUse> taken(std::uint64_t begin, Bytes bytes, std::uint32_t stream);
  std::size_t extents() const { return extents_.size(); }

 private:
  struct Extent {
    std::uint64_t end = 0;
    std::vector<StreamUse> uses;  // by stream
  };
  bool join(Extent& first, const Extent& second);

  std::map<std::uint64_t, Extent> extents_;  // by begin; neighbours that the same streams used are one
};

}  // namespace spillway
