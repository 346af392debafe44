#include "base/spare_nodes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <unordered_map>

namespace spillway {
namespace {

template <class Map>
void expect_a_map() {
  Map map;
  SpareNodes<Map> spare;
  spare.put(map, 1)->second = 10;
  const int* node = &map.at(1);
  spare.erase(map, map.find(1));
  EXPECT_TRUE(map.empty());
  const auto again = spare.put(map, 2);
  EXPECT_EQ(&again->second, node) << "the same node";
  EXPECT_EQ(again->second, 0) << "and nothing of what was there";
  again->second = 20;
  EXPECT_EQ(spare.put(map, 2)->second, 20) << "what is there stays";
  spare.put(map, 3);
  spare.erase(map, map.find(3));
  EXPECT_EQ(spare.put(map, 2)->second, 20) << "with a spare node, too";
  EXPECT_EQ(map.size(), 1u);
}

TEST(SpareNodes, AreUsedAgain) {
  expect_a_map<std::map<int, int>>();
  expect_a_map<std::unordered_map<int, int>>();
}

TEST(SpareNodes, KeepASetInOrder) {
  std::set<int> set;
  SpareNodes<std::set<int>> spare;
  for (const int value : {5, 1, 3}) spare.put(set, value);
  spare.erase(set, set.find(3));
  spare.put(set, 9);
  EXPECT_EQ(set, (std::set<int>{1, 5, 9}));
}

TEST(SpareNodes, StayWithTheOriginalOfACopy) {
  std::set<int> set{1};
  SpareNodes<std::set<int>> spare;
  spare.erase(set, set.begin());
  auto copy = spare;
  std::set<int> other;
  copy.put(other, 2);
  spare.put(set, 3);
  EXPECT_TRUE(other.contains(2) && set.contains(3));
}

}  // namespace
}  // namespace spillway
