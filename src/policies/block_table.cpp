#include "policies/block_table.h"

#include <algorithm>
#include <utility>

namespace spillway {
namespace {

// Puts it first, and forgets the last one where there are too many.
template <class T>
void touch(std::vector<T>& recent, typename std::vector<T>::iterator known, T added, std::size_t most) {
  if (known != recent.end()) {
    std::rotate(recent.begin(), known, known + 1);
    return;
  }
  if (recent.size() == most) recent.pop_back();
  recent.insert(recent.begin(), std::move(added));
}

}  // namespace

BlockTable::Entry& BlockTable::entry(BlockId block) {
  Row& row = rows_[block.value % shape_.rows];
  touch(row, std::ranges::find(row, block, &Entry::block), Entry{block, {}}, shape_.ways);
  return row.front();
}

const BlockTable::Entry* BlockTable::find(BlockId block) const {
  const auto row = rows_.find(block.value % shape_.rows);
  if (row == rows_.end()) return nullptr;
  const auto known = std::ranges::find(row->second, block, &Entry::block);
  return known != row->second.end() ? &*known : nullptr;
}

void BlockTable::faulted(BlockId block) {
  if (last_ == block) return;
  from_start_.reset();
  blocks_.reset();
  if (last_) {
    std::vector<BlockId>& successors = entry(*last_).successors;
    touch(successors, std::ranges::find(successors, block), block, shape_.successors);
  }
  entry(block);
  if (!first_) first_ = block;
  last_ = block;
}

void BlockTable::ended() {
  if (first_) {
    from_start_.reset();
    start_ = first_;
    end_ = last_;
  }
  first_.reset();
  last_.reset();
  said_.clear();
}

std::vector<BlockId> BlockTable::walk(BlockId from, Blocks& seen) const {
  std::vector<BlockId> found{from};
  if (from == end_) return found;
  seen.insert(from);
  for (std::size_t at = 0; at < found.size(); ++at) {
    const Entry* known = find(found[at]);
    if (known == nullptr) continue;
    for (const BlockId next : known->successors) {
      if (!seen.insert(next).second) continue;
      found.push_back(next);
      if (next == end_) return found;
    }
  }
  return found;
}

std::vector<BlockId> BlockTable::after(BlockId faulted) {
  std::vector<BlockId> found = walk(faulted, said_);
  found.erase(found.begin());
  return found;
}

const std::vector<BlockRange>& BlockTable::from_start() {
  if (from_start_) return *from_start_;
  Blocks seen;
  return from_start_.emplace(in_ranges(start_ ? walk(*start_, seen) : std::vector<BlockId>{}));
}

const std::vector<BlockRange>& BlockTable::blocks() {
  if (blocks_) return *blocks_;
  std::vector<BlockId> all;
  for (const auto& [place, row] : rows_)
    for (const Entry& known : row) {
      all.push_back(known.block);
      all.insert(all.end(), known.successors.begin(), known.successors.end());
    }
  std::ranges::sort(all);
  const auto twice = std::ranges::unique(all);
  all.erase(twice.begin(), twice.end());
  return blocks_.emplace(in_ranges(all));
}

std::vector<BlockRange> in_ranges(const std::vector<BlockId>& blocks) {
  std::vector<BlockRange> ranges;
  for (const BlockId block : blocks)
    if (!ranges.empty() && ranges.back().end() == block)
      ++ranges.back().count;
    else
      ranges.push_back({block, 1});
  return ranges;
}

}  // namespace spillway
