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
// needed last. Rows are blocks that are always used together.
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
  // Of the rows' blocks that could leave, one of those that are used last; nothing if there is none.
  std::optional<BlockId> victim(const PageTable& table) const;

 private:
  std::uint64_t next_use(std::uint32_t row, KernelId after) const;

  std::span<const Row> rows_;
  std::uint32_t kernels_ = 0;
  std::uint64_t iteration_ = 0;  // times that kernel 0 has passed
  KernelId last_{};
  std::vector<std::vector<std::uint32_t>> used_at_;  // rows, by kernel
  std::vector<std::uint64_t> next_;                  // by row: kernels from the very first one on
  std::set<std::pair<std::uint64_t, std::uint32_t>> by_next_use_;
};

}  // namespace spillway
