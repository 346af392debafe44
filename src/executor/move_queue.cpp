#include "executor/move_queue.h"

#include "base/check.h"

namespace spillway {

MoveQueue::ByFirst::const_iterator MoveQueue::first_overlapping(BlockRange blocks) const {
  auto at = by_first_.lower_bound(blocks.first);
  if (at != by_first_.begin())
    if (const auto before = std::prev(at); blocks.first < by_turn_.at(before->second).rest.end()) at = before;
  return at;
}

void MoveQueue::push(BlockRange blocks, bool keeps_copy) {
  BlockRange part{blocks.first, 0};
  for (const BlockRange& waiting : overlapping(blocks)) {
    if (part.first < waiting.first) add({part.first, waiting.first.value - part.first.value}, keeps_copy);
    part.first = waiting.end();
  }
  if (part.first < blocks.end()) add({part.first, blocks.end().value - part.first.value}, keeps_copy);
}

void MoveQueue::add(BlockRange blocks, bool keeps_copy) {
  CHECK(blocks.count > 0 && by_first_.emplace(blocks.first, next_turn_).second);
  by_turn_.emplace(next_turn_++, Wish{.rest = blocks, .keeps_copy = keeps_copy});
}

void MoveQueue::drop_front(std::uint32_t count, bool begun) {
  CHECK(!empty());
  const auto front = by_turn_.begin();
  Wish& wish = front->second;
  CHECK(count <= wish.rest.count);
  by_first_.erase(wish.rest.first);
  wish.rest.first.value += count;
  wish.rest.count -= count;
  wish.begun |= begun;
  if (wish.rest.count == 0)
    by_turn_.erase(front);
  else
    by_first_.emplace(wish.rest.first, front->first);
}

void MoveQueue::drop_overlapping(BlockRange blocks) {
  if (empty()) return;
  for (auto at = first_overlapping(blocks); at != by_first_.end() && at->first < blocks.end();) {
    CHECK(by_turn_.erase(at->second) == 1);
    at = by_first_.erase(at);
  }
}

std::vector<BlockRange> MoveQueue::overlapping(BlockRange blocks) const {
  std::vector<BlockRange> found;
  for (auto at = first_overlapping(blocks); at != by_first_.end() && at->first < blocks.end(); ++at)
    found.push_back(by_turn_.at(at->second).rest);
  return found;
}

void MoveQueue::check_invariants() const {
  CHECK(by_turn_.size() == by_first_.size());
  BlockId free{0};
  for (const auto& [first, turn] : by_first_) {
    const BlockRange rest = by_turn_.at(turn).rest;
    CHECK(turn < next_turn_ && rest.first == first && rest.count > 0);
    CHECK(first >= free);  // No two have a block in common.
    free = rest.end();
  }
}

}  // namespace spillway
