#include "executor/foresight.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spillway {

Foresight::Foresight(std::span<const Row> rows, std::uint32_t kernels)
    : rows_(rows), kernels_(kernels), used_at_(kernels), next_(rows.size()) {
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    CHECK(!rows[row].uses.empty() && rows[row].uses.back().value < kernels);
    CHECK(std::ranges::is_sorted(rows[row].uses));
    for (const KernelId use : rows[row].uses) used_at_[use.value].push_back(row);
    next_[row] = rows[row].uses.front().value;
    by_next_use_.emplace(next_[row], row);
    for (BlockId block = rows[row].blocks.first; block < rows[row].blocks.end(); ++block.value) use(block).row = row;
  }
}

Foresight::Use& Foresight::use(BlockId block) {
  if (block.value >= uses_.size()) uses_.resize(block.value + 1);
  return uses_[block.value];
}

std::uint64_t Foresight::next_use(std::uint32_t row, KernelId after) const {
  const std::vector<KernelId>& uses = rows_[row].uses;
  const auto next = std::ranges::upper_bound(uses, after);
  return next != uses.end() ? iteration_ * kernels_ + next->value : (iteration_ + 1) * kernels_ + uses.front().value;
}

void Foresight::expect(std::uint32_t row, std::uint64_t next) {
  const bool listed = by_next_use_.erase({next_[row], row}) > 0;
  const bool listed_dead = dead_by_next_use_.erase({next_[row], row}) > 0;
  next_[row] = next;
  if (listed) by_next_use_.emplace(next, row);
  if (listed_dead) dead_by_next_use_.emplace(next, row);
}

void Foresight::passed(KernelId kernel) {
  if (kernel.value >= kernels_) return;
  if (kernel < last_) {
    ++iteration_;
    stayed_.clear();
  }
  // What was to be used before: those kernels were left out.
  for (const auto* rows : {&by_next_use_, &dead_by_next_use_})
    while (!rows->empty() && rows->begin()->first < iteration_ * kernels_ + kernel.value)
      expect(rows->begin()->second, next_use(rows->begin()->second, kernel));
  last_ = kernel;
  ++passed_;
  for (const std::uint32_t row : used_at_[kernel.value]) expect(row, next_use(row, kernel));
}

void Foresight::used(BlockRange blocks) {
  if (kernels_ == 0) return;
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
    Use& known = use(block);
    if (known.row) {
      by_next_use_.emplace(next_[*known.row], *known.row);
      continue;
    }
    known.last = passed_;
    if (!std::exchange(known.listed, true)) by_last_use_.emplace(passed_, block.value);
  }
}

void Foresight::stayed(BlockRange blocks) {
  if (kernels_ == 0) return;
  used(blocks);
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) stayed_.insert(block);
}

void Foresight::died(BlockId block) {
  if (kernels_ == 0) return;
  if (const auto row = use(block).row) dead_by_next_use_.emplace(next_[*row], *row);
}

std::optional<BlockId> Foresight::dead(const PageTable& table) {
  const auto first = table.dead();
  if (!first || kernels_ == 0 || is_piece(*first) || !use(*first).row) return first;
  while (!dead_by_next_use_.empty()) {
    const auto last = std::prev(dead_by_next_use_.end());
    const BlockRange blocks = rows_[last->second].blocks;
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
      if (table.is_dead(block)) return block;
    dead_by_next_use_.erase(last);
  }
  return first;
}

bool Foresight::could_leave(BlockId block, const PageTable& table) const {
  return on_device(table.state(block)) && table.live(block) && !table.pinned(block);
}

std::optional<BlockId> Foresight::idle(const PageTable& table) {
  for (auto at = by_last_use_.begin(); at != by_last_use_.end();) {
    const auto [last, index] = *at;
    const BlockId block{index};
    if (!is_long_ago(last)) break;
    if (last != uses_[index].last) {
      at = by_last_use_.erase(at);
      const auto right = by_last_use_.emplace(uses_[index].last, index).first;
      if (at == by_last_use_.end() || *right < *at) at = right;
      continue;
    }
    if (could_leave(block, table)) return block;
    if (table.pinned(block) && on_device(table.state(block))) {
      ++at;
      continue;
    }
    uses_[index].listed = false;  // It is away or dead: whoever needs it will tell.
    at = by_last_use_.erase(at);
  }
  return std::nullopt;
}

bool Foresight::is_idle(BlockId block) const {
  return block.value < uses_.size() && !uses_[block.value].row && is_long_ago(uses_[block.value].last);
}

void Foresight::check_invariants() const {
  for (const auto* rows : {&by_next_use_, &dead_by_next_use_})
    for (const auto& [next, row] : *rows) CHECK(next == next_.at(row));
  std::size_t listed = 0;
  for (const Use& each : uses_) {
    CHECK(each.last <= passed_);
    CHECK(!each.listed || !each.row);
    listed += each.listed;
  }
  CHECK(listed == by_last_use_.size());
  for (const auto& [last, block] : by_last_use_) CHECK(uses_.at(block).listed && last <= uses_[block].last);
}

std::optional<BlockId> Foresight::victim(const PageTable& table) {
  for (auto at = by_next_use_.end(); at != by_next_use_.begin();) {
    --at;
    if (at->first <= running()) return std::nullopt;
    bool gone = true;
    const BlockRange blocks = rows_[at->second].blocks;
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
      if (could_leave(block, table) && !stayed_.contains(block)) return block;
      gone = gone && (!table.live(block) || table.state(block) == BlockState::stored || table.is_split(block));
    }
    if (gone) at = by_next_use_.erase(at);
  }
  return std::nullopt;
}

}  // namespace spillway
