#include "runtime/block_traffic.h"

#include <gtest/gtest.h>

#include <array>

namespace spillway {
namespace {

constexpr Move move_of(std::uint32_t id, BlockRange blocks, Tier from, Tier to, Urgency urgency) {
  return {.id = {id}, .blocks = blocks, .from = from, .to = to, .urgency = urgency};
}

TEST(BlockTraffic, CountsOfATensorWhatMovedOfItsBlocks) {
  BlockTraffic traffic(8, kBlockBytes);
  traffic.asked(std::array<Command, 2>{move_of(1, {{2}, 3}, Tier::device, Tier::ssd, Urgency::need), Launch{{{0}}}},
                {});
  EXPECT_EQ(traffic.moved(0, kBlockBytes * 8), MovedBytes{}) << "it is under way";
  traffic.told({{}, MoveDone{{1}}});
  traffic.asked(std::array<Command, 1>{move_of(2, {{3}, 1}, Tier::ssd, Tier::device, Urgency::fault)}, {});
  traffic.told({{}, MoveDone{{2}}});
  traffic.asked(std::array<Command, 1>{move_of(3, {{4}, 1}, Tier::host, Tier::device, Urgency::plan)}, {});
  traffic.told({{}, MoveDone{{3}}});
  EXPECT_EQ(traffic.moved(0, kBlockBytes * 8), (MovedBytes{.all = kBlockBytes * 5, .waited_for = kBlockBytes}));
  // The second half of block 2 and the first quarter of block 3.
  EXPECT_EQ(traffic.moved(5_MiB .value, Bytes{(1_MiB).value + (512_KiB).value}),
            (MovedBytes{.all = 1_MiB + 512_KiB * 2, .waited_for = 512_KiB}));
}

TEST(BlockTraffic, CountsLargerBlocksByTheirBytes) {
  BlockTraffic traffic(8, 8_MiB);
  traffic.asked(std::array<Command, 1>{move_of(1, {{2}, 2}, Tier::device, Tier::ssd, Urgency::need)}, {});
  traffic.told({{}, MoveDone{{1}}});
  EXPECT_EQ(traffic.moved(0, 64_MiB).all, 16_MiB);
  EXPECT_EQ(traffic.moved((31_MiB).value, 4_MiB).all, 1_MiB) << "block 3 is the last that moved";
}

TEST(BlockTraffic, WhatIsCalledBackHasNotMoved) {
  BlockTraffic traffic(8, kBlockBytes);
  traffic.asked(std::array<Command, 1>{move_of(1, {{2}, 1}, Tier::device, Tier::ssd, Urgency::plan)}, {});
  traffic.told({{}, MoveFailed{.move = {1}, .cancelled = true}});
  traffic.told({{}, MoveDone{{1}}});
  EXPECT_EQ(traffic.moved(0, kBlockBytes * 8), MovedBytes{});
}

}  // namespace
}  // namespace spillway
