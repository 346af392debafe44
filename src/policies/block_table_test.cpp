#include "policies/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/execution_table.h"

namespace spillway {
namespace {

// Blocks by letter. In a table with as many rows none of them meet.
void run(BlockTable& table, std::string_view faults) {
  for (const char block : faults) table.faulted({static_cast<std::uint32_t>(block)});
  table.ended();
}
std::string text(const std::vector<BlockRange>& ranges) {
  std::string result;
  for (const BlockRange& range : ranges)
    for (BlockId block = range.first; block < range.end(); ++block.value) result += static_cast<char>(block.value);
  return result;
}
std::string after(BlockTable table, char block) {
  return text(in_ranges(table.after({static_cast<std::uint32_t>(block)})));
}

// Figure 5. Misses a b c: each is the successor of the one before, and with a second level c is also one of a's. Then a
// misses again, and b and c are brought. With one level (section 4.2) c is not in a's row, and chaining finds it in
// b's. What a follows is new: c's successor is a from now on.
TEST(BlockTable, AsFigure5) {
  BlockTable table({.rows = 2048, .ways = 1, .successors = 2});
  for (const char block : std::string_view("abca")) table.faulted({static_cast<std::uint32_t>(block)});
  EXPECT_EQ(after(table, 'a'), "bc");
  EXPECT_EQ(after(table, 'c'), "ab");
}

// Figure 7, kernel 0: rows a: b p, b: e q, c: d, start a, end q. Of two successors the first is the later one. So p
// came after a before b did, and q after b before e did. The last run goes from a to q.
// From a: its row gives b and p, b's row e and q. q is the end.
TEST(BlockTable, AsFigure7) {
  BlockTable table({});
  for (const std::string_view faults : {"cd", "ap", "bq", "abeq"}) run(table, faults);
  EXPECT_EQ(after(table, 'a'), "bpeq");
  EXPECT_EQ(text(table.from_start()), "abpeq");
  EXPECT_EQ(after(table, 'c'), "d");
}

// Kernel 1: rows f: e u, g: t i, k: g n, start k, end u. The last run goes from k over g and t to u. That t leads on is
// forgotten: the two blocks after it lie in its row, which has two places.
// From k: its row gives g and n, g's row t and i. None of these leads on, so the end is not met.
TEST(BlockTable, AsFigure7WithoutMeetingTheEnd) {
  BlockTable table({});
  for (const std::string_view faults : {"fu", "fe", "gi", "kn"}) run(table, faults);
  for (const std::uint32_t block : {'k' + 0u, 'g' + 0u, 't' + 0u, 't' + 2048u, 't' + 4096u, 'u' + 0u})
    table.faulted({block});
  table.ended();
  EXPECT_EQ(table.end(), BlockId{'u'});
  EXPECT_EQ(text(table.from_start()), "kgnti");
}

TEST(BlockTable, AFaultOnTheEndExpectsNothing) {
  BlockTable table({});
  run(table, "abab");
  EXPECT_EQ(after(table, 'b'), "");
  EXPECT_EQ(after(table, 'a'), "b");
}

TEST(BlockTable, WhatIsKnownBehindTheEndIsNotExpected) {
  BlockTable table({});
  run(table, "abqz");
  EXPECT_EQ(after(table, 'a'), "bqz");
  run(table, "abq");
  EXPECT_EQ(after(table, 'a'), "bq");
}

TEST(BlockTable, StartAndEndAreThoseOfTheLastRunThatFaulted) {
  BlockTable table({});
  EXPECT_TRUE(table.from_start().empty());
  run(table, "abc");
  run(table, "");
  EXPECT_EQ(text(table.from_start()), "abc");
  table.faulted({'b'});  // It takes part once the kernel is over.
  EXPECT_EQ(text(table.from_start()), "abc");
  table.ended();
  EXPECT_EQ(text(table.from_start()), "b");
}

TEST(BlockTable, ARunsFirstFaultFollowsNone) {
  BlockTable table({});
  run(table, "ab");
  run(table, "cd");
  EXPECT_EQ(after(table, 'b'), "");
}

TEST(BlockTable, TheSameBlockDoesNotFollowItself) {
  BlockTable table({});
  run(table, "aab");
  EXPECT_EQ(after(table, 'a'), "b");
}

TEST(BlockTable, TheLeastRecentSuccessorIsForgotten) {
  BlockTable table({.rows = 2048, .ways = 2, .successors = 2});
  run(table, "ab");
  run(table, "ac");
  run(table, "ab");
  run(table, "ad");
  run(table, "x");  // The end is elsewhere.
  EXPECT_EQ(after(table, 'a'), "db");
}

// One row of two ways: of a, b and c the one that was faulted on least recently loses its place.
TEST(BlockTable, TheLeastRecentBlockOfARowIsForgotten) {
  BlockTable two({.rows = 1, .ways = 2, .successors = 4});
  for (const char block : std::string_view("abac")) two.faulted({static_cast<std::uint32_t>(block)});
  EXPECT_EQ(after(two, 'a'), "cb") << "faulted on after b";
  EXPECT_EQ(after(two, 'b'), "") << "c has taken its place";
}

TEST(BlockTable, BlocksOfOtherRowsKeepTheirPlaces) {
  BlockTable table({.rows = 2, .ways = 1, .successors = 4});
  for (const std::uint32_t block : {0u, 1u, 2u}) table.faulted({block});
  EXPECT_EQ(table.after({1}), std::vector<BlockId>{{2}}) << "2 has taken the place of 0, not of 1";
  EXPECT_TRUE(table.after({0}).empty());
}

TEST(BlockTable, ItsBlocksAreAllThatItHasAnythingOf) {
  BlockTable table({.rows = 1, .ways = 1, .successors = 4});
  for (const std::uint32_t block : {7u, 5u, 4u}) table.faulted({block});
  // The only row has one place, which 4 has taken from 5 and 5 from 7.
  EXPECT_EQ(table.blocks(), (std::vector<BlockRange>{{{4}, 1}}));
  table.faulted({9});  // 4 has a successor, and then 9 takes its place.
  EXPECT_EQ(table.blocks(), (std::vector<BlockRange>{{{9}, 1}}));
}

TEST(BlockTable, NeighboursAreOneRange) {
  const std::vector<BlockRange> expected{{{4}, 2}, {{9}, 1}, {{8}, 1}};
  EXPECT_EQ(in_ranges({{4}, {5}, {9}, {8}}), expected);
}

// Figure 6: kernel 0 has a record (7, 9, 92, 75), and kernel 1 has (89, 53, 24, 10), (34, 52, 22, 99) and (4, 3, 939,
// 2): three kernels that ran before it and the one that came after it.
TEST(ExecutionTable, AsFigure6) {
  ExecutionTable table;
  table.follows({{{7}, {9}, {92}, {0}}}, {75});
  table.follows({{{89}, {53}, {24}, {1}}}, {10});
  table.follows({{{34}, {52}, {22}, {1}}}, {99});
  table.follows({{{4}, {3}, {939}, {1}}}, {2});
  EXPECT_EQ(table.next({{{7}, {9}, {92}, {0}}}), ExecutionId{75});
  EXPECT_EQ(table.next({{{34}, {52}, {22}, {1}}}), ExecutionId{99});
  EXPECT_EQ(table.next({{{34}, {52}, {24}, {1}}}), std::nullopt) << "no record is the same";
  EXPECT_EQ(table.next({{{9}, {7}, {92}, {0}}}), std::nullopt) << "nor in this order";
  table.follows({{{7}, {9}, {92}, {0}}}, {76});
  EXPECT_EQ(table.next({{{7}, {9}, {92}, {0}}}), ExecutionId{76});
}

}  // namespace
}  // namespace spillway
