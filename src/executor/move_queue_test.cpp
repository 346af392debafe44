#include "executor/move_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>

namespace spillway {
namespace {

bool overlap(BlockRange a, BlockRange b) { return a.first < b.end() && b.first < a.end(); }

BlockRange any_range() { return {{*rc::gen::inRange(0u, 30u)}, *rc::gen::inRange(1u, 8u)}; }

// The same with one list that is searched from end to end.
struct PlainQueue {
  std::deque<MoveQueue::Wish> wishes;

  bool waits(BlockId block) const {
    return std::ranges::any_of(wishes, [&](const auto& wish) { return wish.rest.contains(block); });
  }
  void push(BlockRange blocks) {
    const std::size_t before = wishes.size();
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
      const bool joins = wishes.size() > before && wishes.back().rest.end() == block;
      if (waits(block)) continue;
      if (joins)
        ++wishes.back().rest.count;
      else
        wishes.push_back({.rest = {block, 1}});
    }
  }
};

TEST(PlannedQueueProperty, IsOneListInTurn) {
  EXPECT_TRUE(rc::check([] {
    MoveQueue queue;
    PlainQueue plain;
    for (int step = *rc::gen::inRange(0, 60); step > 0; --step) {
      const BlockRange range = any_range();
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
        case 1:
          queue.push(range);
          plain.push(range);
          break;
        case 2:
          queue.drop_overlapping(range);
          std::erase_if(plain.wishes, [&](const auto& wish) { return overlap(wish.rest, range); });
          break;
        default:
          if (queue.empty()) break;
          const std::uint32_t count = std::min(range.count, queue.front().rest.count);
          queue.drop_front(count, true);
          MoveQueue::Wish& front = plain.wishes.front();
          front = {.rest = {{front.rest.first.value + count}, front.rest.count - count}, .begun = true};
          if (front.rest.count == 0) plain.wishes.pop_front();
      }
      RC_ASSERT(queue.empty() == plain.wishes.empty());
      if (!queue.empty()) {
        RC_ASSERT(queue.front().rest == plain.wishes.front().rest);
        RC_ASSERT(queue.front().begun == plain.wishes.front().begun);
      }
      const BlockRange looked = any_range();
      std::vector<BlockRange> expected;
      for (const auto& wish : plain.wishes)
        if (overlap(wish.rest, looked)) expected.push_back(wish.rest);
      std::ranges::sort(expected, {}, &BlockRange::first);
      RC_ASSERT(queue.overlapping(looked) == expected);
    }
  }));
}

}  // namespace
}  // namespace spillway
