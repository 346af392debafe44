#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "memory/tier.h"

namespace spillway {

// Planned moves that wait for their turn on one way, first come first served. No two of them have a block in common, so
// those that touch a range are found in O(log n). A plain value.
class MoveQueue {
 public:
  struct Wish {
    BlockRange rest;          // what has not been started yet; never empty
    bool keeps_copy = false;  // where it comes from
    bool begun = false;       // a chunk of it has been started
  };

  // What waits already keeps its turn; the rest gets the last one.
  void push(BlockRange blocks, bool keeps_copy = false);
  bool empty() const { return by_turn_.empty(); }
  const Wish& front() const {
    CHECK(!empty());
    return by_turn_.begin()->second;
  }
  // The first wish's first blocks are started, or need not be.
  void drop_front(std::uint32_t count, bool begun);
  // Forgets every wish that has a block in common with these, wholly.
  void drop_overlapping(BlockRange blocks);
  std::vector<BlockRange> overlapping(BlockRange blocks) const;

  void check_invariants() const;  // O(wishes). For tests.

 private:
  using ByFirst = std::map<BlockId, std::uint64_t>;
  ByFirst::const_iterator first_overlapping(BlockRange blocks) const;
  void add(BlockRange blocks, bool keeps_copy);

  std::map<std::uint64_t, Wish> by_turn_;
  ByFirst by_first_;  // the turn of the wish that begins there
  std::uint64_t next_turn_ = 0;
};

}  // namespace spillway
