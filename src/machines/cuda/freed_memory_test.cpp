#include "machines/cuda/freed_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>

namespace spillway {
namespace {

using Uses = std::vector<StreamUse>;

TEST(FreedMemory, NextOwnerOnTheSameStreamWaitsForNothing) {
  FreedMemory memory;
  memory.freed(0, {512}, {{3, 10}});
  EXPECT_EQ(memory.taken(0, {512}, 3), Uses{});
  EXPECT_EQ(memory.extents(), 0u);
}

TEST(FreedMemory, NextOwnerElsewhereWaitsForTheLatestLaunchOfEachStream) {
  FreedMemory memory;
  memory.freed(0, {512}, {{3, 10}});
  memory.freed(512, {512}, {{3, 7}, {1, 4}});
  memory.freed(1024, {512}, {{2, 9}});
  EXPECT_EQ(memory.taken(256, {1024}, 2), (Uses{{3, 10}, {1, 4}}));
  EXPECT_EQ(memory.taken(0, {256}, 2), (Uses{{3, 10}}));
  EXPECT_EQ(memory.taken(0, {2048}, 1), (Uses{{2, 9}}));  // What had an owner since is not waited for again.
}

TEST(FreedMemory, NeighboursOfTheSameStreamsBecomeOne) {
  FreedMemory memory;
  memory.freed(0, {512}, {{1, 5}, {2, 1}});
  memory.freed(1024, {512}, {{2, 3}, {1, 4}});
  EXPECT_EQ(memory.extents(), 2u);
  memory.freed(512, {512}, {{1, 2}, {2, 2}});
  EXPECT_EQ(memory.extents(), 1u);
  EXPECT_EQ(memory.taken(0, {512}, 0), (Uses{{1, 5}, {2, 3}}));
}

// Beside a list of what used each byte last. What has become one may be waited for a little longer, never shorter.
RC_GTEST_PROP(FreedMemory, NobodyComesBeforeWhatUsedItsMemory, ()) {
  constexpr std::size_t kBytes = 32;
  constexpr std::uint32_t kStreams = 3;
  FreedMemory memory;
  std::array<std::array<std::uint64_t, kStreams>, kBytes> used{};  // 0: not
  std::array<bool, kBytes> owned{};
  std::array<std::uint64_t, kStreams> launches{};
  for (int step = *rc::gen::inRange(1, 60); step > 0; --step) {
    const auto begin = *rc::gen::inRange<std::size_t>(0, kBytes), end = *rc::gen::inRange(begin + 1, kBytes + 1);
    const auto stream = *rc::gen::inRange(0u, kStreams);
    const std::uint64_t now = ++launches[stream];
    if (std::ranges::any_of(std::span(owned).subspan(begin, end - begin), std::identity())) continue;
    const Uses waits = memory.taken(begin, {end - begin}, stream);
    for (std::uint32_t other = 0; other < kStreams; ++other) {
      std::uint64_t latest = 0;
      for (std::size_t at = begin; at < end; ++at) latest = std::max(latest, used[at][other]);
      const auto wait = std::ranges::find(waits, other, &StreamUse::stream);
      const std::uint64_t waited = wait == waits.end() ? 0 : wait->launch;
      RC_ASSERT((other == stream ? waited == 0 : waited >= latest && waited <= launches[other]));
    }
    for (std::size_t at = begin; at < end; ++at) used[at] = {}, owned[at] = true;
    if (*rc::gen::inRange(0, 4) == 0) continue;  // It lives on.
    Uses uses{{stream, now}};
    if (*rc::gen::arbitrary<bool>()) uses.push_back({(stream + 1) % kStreams, launches[(stream + 1) % kStreams]});
    memory.freed(begin, {end - begin}, uses);
    for (std::size_t at = begin; at < end; ++at) {
      owned[at] = false;
      for (const StreamUse& use : uses) used[at][use.stream] = use.launch;
    }
  }
}

}  // namespace
}  // namespace spillway
