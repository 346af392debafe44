#include "import/allocations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace spillway {
namespace {

KinetoMemory event(std::int64_t at, std::uint64_t address, std::int64_t bytes) {
  return {.address = address, .bytes = bytes, .at = at};
}

TEST(Allocations, EachIsClaimedOnceTheFirstFirst) {
  Allocations some({event(10, 1, 64), event(20, 2, 64), event(30, 1, -64), event(40, 1, 64)}, 1);
  const auto first = some.claim(Bytes{64}, {.begin = 5, .end = 25});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->given.at, 10);
  EXPECT_EQ(first->freed, 30) << "an address that is given again is other memory";
  const auto second = some.claim(Bytes{64}, {.begin = 5, .end = 25});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->given.at, 20);
  EXPECT_FALSE(second->freed);
  EXPECT_FALSE(some.claim(Bytes{64}, {.begin = 5, .end = 25})) << "the third is of another time";
  EXPECT_FALSE(some.claim(Bytes{63}, {.begin = 5, .end = 50}));
  EXPECT_TRUE(some.claim(Bytes{64}, {.begin = 40, .end = 40}));
}

TEST(Allocations, SizesAreThoseOfTheAllocator) {
  Allocations rounded({event(1, 1, 512), event(2, 2, 1024), event(3, 3, 700)}, 512);
  const auto small = rounded.claim(Bytes{4}, {.begin = 0, .end = 9});
  ASSERT_TRUE(small);
  EXPECT_EQ(small->given.address, 1u);
  EXPECT_FALSE(rounded.claim(Bytes{512}, {.begin = 0, .end = 9}));
  const auto larger = rounded.claim(Bytes{513}, {.begin = 0, .end = 9});
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->given.address, 2u);
  const auto asked = rounded.claim(Bytes{700}, {.begin = 0, .end = 9});
  ASSERT_TRUE(asked) << "what was asked for instead of what was given";
  EXPECT_EQ(asked->given.address, 3u);
}

// What a search through all events finds.
TEST(Allocations, ClaimsAreThoseOfASearchThroughAll) {
  std::mt19937 random(7);
  std::vector<KinetoMemory> events;
  for (std::uint64_t e = 0; e < 400; ++e)
    events.push_back(event(static_cast<std::int64_t>(random() % 100), e, 1 + static_cast<std::int64_t>(random() % 5)));
  Allocations allocations(events, 1);
  std::ranges::stable_sort(events, {}, &KinetoMemory::at);
  std::vector<bool> taken(events.size(), false);
  for (int claim = 0; claim < 600; ++claim) {
    const auto begin = static_cast<std::int64_t>(random() % 100);
    const KinetoSpan during{.begin = begin, .end = begin + static_cast<std::int64_t>(random() % 30)};
    const auto bytes = 1 + static_cast<std::int64_t>(random() % 5);
    std::size_t wanted = 0;
    while (wanted < events.size() && (taken[wanted] || events[wanted].bytes != bytes ||
                                      events[wanted].at < during.begin || events[wanted].at > during.end))
      ++wanted;
    const auto found = allocations.claim(Bytes{static_cast<std::uint64_t>(bytes)}, during);
    ASSERT_EQ(found.has_value(), wanted < events.size()) << "claim " << claim;
    if (!found) continue;
    ASSERT_EQ(found->given.address, events[wanted].address) << "claim " << claim;
    taken[wanted] = true;
  }
}

}  // namespace
}  // namespace spillway
