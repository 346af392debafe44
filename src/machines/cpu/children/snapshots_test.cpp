#include "machines/cpu/children/snapshots.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace spillway {
namespace {

using Where = Snapshots::View::Where;

TEST(SnapshotsTest, KeepsABlockOnceForAllThatWereTakenSinceItChanged) {
  Snapshots snapshots(2);
  const SnapshotId first = snapshots.take(), second = snapshots.take();
  snapshots.keep({0}, 7);
  EXPECT_FALSE(snapshots.wants({0}));
  EXPECT_TRUE(snapshots.wants({1}));
  EXPECT_EQ(snapshots.find(first, {0}).slot, 7u);
  EXPECT_EQ(snapshots.find(second, {0}).slot, 7u);
  const SnapshotId third = snapshots.take();
  EXPECT_EQ(snapshots.find(third, {0}).where, Where::block);
  EXPECT_TRUE(snapshots.drop(first).empty());
  EXPECT_EQ(snapshots.drop(second), std::vector<std::uint32_t>{7});
  EXPECT_EQ(snapshots.find(third, {0}).where, Where::block);
}

// Against a model: the contents of each block by number, as each snapshot saw them.
RC_GTEST_PROP(SnapshotsProperty, EachSeesWhatWasThereWhenItWasTaken, ()) {
  constexpr std::uint32_t kBlocks = 4;
  Snapshots snapshots(kBlocks);
  std::vector<int> now(kBlocks, 0);  // contents; -1: none
  std::map<std::uint32_t, int> slots;
  std::map<SnapshotId, std::pair<std::vector<int>, int>> taken;  // contents, holders
  int next = 1;
  std::uint32_t next_slot = 0;
  const auto steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const BlockId block{*rc::gen::inRange(0u, kBlocks)};
    switch (*rc::gen::inRange(0, 5)) {
      case 0: {
        const SnapshotId snapshot = snapshots.take();
        for (std::uint32_t each = 0; each < kBlocks; ++each)
          if (now[each] < 0) snapshots.has_no_bytes({each});
        taken[snapshot] = {now, 1};
        break;
      }
      case 1:
      case 2:
        if (snapshots.wants(block)) {
          if (*rc::gen::inRange(0, 8) == 0) {
            snapshots.lose(block);
            for (auto& each : taken)
              if (each.second.first[block.value] == now[block.value]) each.second.first[block.value] = -2;
          } else {
            slots[next_slot] = now[block.value];
            snapshots.keep(block, next_slot);
            if (*rc::gen::inRange(0, 8) == 0) {  // It cannot be written.
              snapshots.lose(block, next_slot);
              slots.erase(next_slot);
              for (auto& each : taken)
                if (each.second.first[block.value] == now[block.value]) each.second.first[block.value] = -2;
            }
            ++next_slot;
          }
        }
        now[block.value] = *rc::gen::inRange(0, 4) == 0 ? -1 : next++;
        break;
      case 3:
        if (!taken.empty()) {
          auto& each = *std::next(taken.begin(), *rc::gen::inRange<int>(0, static_cast<int>(taken.size())));
          snapshots.hold(each.first);
          ++each.second.second;
        }
        break;
      default:
        if (!taken.empty()) {
          const auto each = std::next(taken.begin(), *rc::gen::inRange<int>(0, static_cast<int>(taken.size())));
          for (const std::uint32_t slot : snapshots.drop(each->first)) RC_ASSERT(slots.erase(slot) == 1u);
          if (--each->second.second == 0) taken.erase(each);
        }
    }
    RC_ASSERT(snapshots.empty() == taken.empty());
    if (taken.empty()) RC_ASSERT(slots.empty());
    for (const auto& [snapshot, seen] : taken)
      for (std::uint32_t each = 0; each < kBlocks; ++each) {
        const Snapshots::View view = snapshots.find(snapshot, {each});
        const int expected = seen.first[each];
        switch (view.where) {
          case Where::block:
            RC_ASSERT(now[each] == expected);
            break;
          case Where::slot:
            RC_ASSERT(slots.at(view.slot) == expected);
            break;
          case Where::nowhere:
            RC_ASSERT(expected == -1);
            break;
          case Where::lost:
            RC_ASSERT(expected == -2);
        }
      }
  }
}

}  // namespace
}  // namespace spillway
