#include "executor/foresight.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {

Foresight::Foresight(std::span<const Row> rows, std::uint32_t kernels)
    : rows_(rows), kernels_(kernels), used_at_(kernels), next_(rows.size()) {
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    CHECK(!rows[row].uses.empty() && rows[row].uses.back().value < kernels);
    for (const KernelId use : rows[row].uses) used_at_[use.value].push_back(row);
    next_[row] = rows[row].uses.front().value;
    by_next_use_.emplace(next_[row], row);
  }
}

std::uint64_t Foresight::next_use(std::uint32_t row, KernelId after) const {
  const std::vector<KernelId>& uses = rows_[row].uses;
  const auto next = std::ranges::upper_bound(uses, after);
  return next != uses.end() ? iteration_ * kernels_ + next->value : (iteration_ + 1) * kernels_ + uses.front().value;
}

void Foresight::passed(KernelId kernel) {
  if (kernel.value >= kernels_) return;
  if (kernel < last_) ++iteration_;
  last_ = kernel;
  for (const std::uint32_t row : used_at_[kernel.value]) {
    by_next_use_.erase({next_[row], row});
    next_[row] = next_use(row, kernel);
    by_next_use_.emplace(next_[row], row);
  }
}

std::optional<BlockId> Foresight::victim(const PageTable& table) const {
  for (auto at = by_next_use_.rbegin(); at != by_next_use_.rend(); ++at) {
    const BlockRange blocks = rows_[at->second].blocks;
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
      if (on_device(table.state(block)) && table.live(block) && !table.pinned(block)) return block;
  }
  return std::nullopt;
}

}  // namespace spillway
