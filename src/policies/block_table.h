#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ids.h"
#include "memory/tier.h"

namespace spillway {

// DeepUM's UM block correlation table of one execution ID (section 4.2, figure 7): which block a kernel faults on after
// which. It is made of rows as a cache is, so that it stays small, and forgets what was faulted on least recently. A
// plain value.
class BlockTable {
 public:
  struct Shape {
    std::uint32_t rows = 2048, ways = 2, successors = 4;
  };
  explicit BlockTable(Shape shape) : shape_(shape) {}

  // The kernel has faulted on this block. It follows the block that it faulted on before.
  void faulted(BlockId block);
  // The kernel is over. Where it has begun and ended to fault stays as it was if it has not faulted.
  void ended();

  // The first block and the last that the kernel faulted on, the last time that it did.
  std::optional<BlockId> start() const { return start_; }
  std::optional<BlockId> end() const { return end_; }

  // What is expected once the kernel has faulted on this block: its successors, theirs and so on, breadth first, up to
  // the end block. Each is said once while the kernel runs, so a kernel that faults often is not slow.
  std::vector<BlockId> after(BlockId faulted);
  // What is expected of a kernel to come: the start block and what is expected after it.
  const std::vector<BlockRange>& from_start();
  // All that it has anything of, in ascending order.
  const std::vector<BlockRange>& blocks();

 private:
  struct Entry {
    BlockId block;
    std::vector<BlockId> successors;  // the most recent first
  };
  using Row = std::vector<Entry>;  // the most recent first

  Entry& entry(BlockId block);
  const Entry* find(BlockId block) const;
  using Blocks = std::unordered_set<BlockId>;
  std::vector<BlockId> walk(BlockId from, Blocks& seen) const;

  Shape shape_;
  std::unordered_map<std::uint32_t, Row> rows_;
  std::optional<BlockId> start_, end_;
  // What it says of a kernel to come is the same until it learns something: most kernels do not fault.
  std::optional<std::vector<BlockRange>> from_start_, blocks_;
  // Of the kernel that runs:
  std::optional<BlockId> first_, last_;
  Blocks said_;
};

// These blocks, neighbours in one range, otherwise in the order that they have.
std::vector<BlockRange> in_ranges(const std::vector<BlockId>& blocks);

}  // namespace spillway
