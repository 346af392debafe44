#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "memory/page_table.h"
#include "memory/tier.h"

namespace spillway {

// When blocks will be used next, as far as a plan's iteration says: what has to leave all the same should be what is
// needed last. Rows are blocks that are always used together. Of the other blocks it knows when they were used, and
// that those are idle which nobody has used for long.
class Foresight {
 public:
  struct Row {
    BlockRange blocks;
    std::vector<KernelId> uses;  // in an iteration, ascending; not empty
  };

  Foresight() = default;
  explicit Foresight(std::span<const Row> rows, std::uint32_t kernels);

  // This kernel has ended.
  void passed(KernelId kernel);
  // Somebody uses these blocks now, or is about to. Whatever brings a block to life or to the device must say so.
  void used(BlockRange blocks);
  // They could not leave: others are victims before them until the plan's iteration is over.
  void stayed(BlockRange blocks);
  // Nobody lives in this block any more, and it is still on the device.
  void died(BlockId block);
  // A dead block: the one that died first if no plan knows of it, else the one that will live again last.
  std::optional<BlockId> dead(const PageTable& table);
  // A block that could leave, and is idle: the plan knows nothing of it, and nobody has used it for kIdleAfter
  // iterations.
  std::optional<BlockId> idle(const PageTable& table);
  bool is_idle(BlockId block) const;
  // Of the rows' blocks that could leave and that the running kernel does not use, one of those that are used last;
  // nothing if there is none. A kernel that has to take from itself goes through several rows at once, and what came
  // first of these only the page table knows.
  std::optional<BlockId> victim(const PageTable& table);

  void check_invariants() const;  // O(rows and blocks). For tests.

 private:
  // Not one: what is used once in each iteration, but not always at the same kernel, must stay.
  static constexpr std::uint64_t kIdleAfter = 2;
  struct Use {
    std::optional<std::uint32_t> row;  // if it is planned
    bool listed = false;               // else: in by_last_use_, with this time or an earlier one
    std::uint64_t last = 0;
  };

  // The kernel after the last one that has ended, counted as in next_: what runs, unless the script leaves some out.
  std::uint64_t running() const { return passed_ == 0 ? 0 : iteration_ * kernels_ + last_.value + 1; }
  std::uint64_t next_use(std::uint32_t row, KernelId after) const;
  void expect(std::uint32_t row, std::uint64_t next);
  bool is_long_ago(std::uint64_t use) const { return use + kIdleAfter * kernels_ < passed_; }
  bool could_leave(BlockId block, const PageTable& table) const;
  Use& use(BlockId block);

  std::span<const Row> rows_;
  std::uint32_t kernels_ = 0;
  std::uint64_t iteration_ = 0;  // times that kernel 0 has passed
  KernelId last_{};
  std::vector<std::vector<std::uint32_t>> used_at_;  // rows, by kernel
  std::vector<std::uint64_t> next_;                  // by row: kernels from the very first one on
  // Rows, but for some that are wholly away or dead: with much more below than on the device those come first.
  std::set<std::pair<std::uint64_t, std::uint32_t>> by_next_use_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> dead_by_next_use_;  // rows that may have dead blocks
  std::uint64_t passed_ = 0;                                            // kernels of the plan
  std::vector<Use> uses_;                                               // by block
  // Blocks that are not planned, on the device or not. The times may be too early, and are put right on the way out.
  std::set<std::pair<std::uint64_t, std::uint32_t>> by_last_use_;
  std::set<BlockId> stayed_;
};

}  // namespace spillway
