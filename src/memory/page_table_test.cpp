#include "memory/page_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <vector>

namespace spillway {
namespace {

constexpr Bytes kUnlimited{UINT64_MAX / 2};

PageTable table_of(std::uint32_t blocks, PerTier<Bytes> capacity = {kUnlimited, kUnlimited, kUnlimited}) {
  PageTable table(capacity);
  table.add_blocks(blocks, kBlockBytes);
  return table;
}

TEST(PageTable, ABlockInFlightCountsOnBothTiers) {
  PageTable table = table_of(1);
  table.retain({0});
  table.populate({0});
  table.evict({0}, Tier::ssd);
  EXPECT_EQ(table.used(Tier::device), kBlockBytes);
  EXPECT_EQ(table.used(Tier::ssd), kBlockBytes);
  EXPECT_EQ(table.leaving(), kBlockBytes);
  table.evicted({0});
  EXPECT_EQ(table.used(Tier::device), Bytes{});
  table.fetch({0});
  EXPECT_EQ(table.used(Tier::device), kBlockBytes);
  EXPECT_EQ(table.used(Tier::ssd), kBlockBytes);
  table.fetched({0});
  EXPECT_EQ(table.used(Tier::ssd), Bytes{});
}

TEST(PageTable, CountsLargeBlocksByTheirBytes) {
  PageTable table({64_MiB, {}, 64_MiB});
  EXPECT_EQ(table.block_bytes(), kBlockBytes);
  table.add_blocks(2, 1_MiB);
  EXPECT_EQ(table.block_bytes(), kBlockBytes);
  table.add_blocks(2, kMostBlockBytes);
  EXPECT_EQ(table.block_bytes(), kMostBlockBytes);
  table.populate({0});
  table.populate({2});
  EXPECT_EQ(table.used(Tier::device), 1_MiB + kMostBlockBytes);
  table.check_invariants();
}

TEST(PageTable, TheVictimIsDeadIfAnyElseTheLeastRecentlyMigrated) {
  PageTable table = table_of(4);
  for (std::uint32_t block = 0; block < 4; ++block) {
    table.retain({block});
    table.populate({block});
  }
  EXPECT_EQ(table.victim(), BlockId{0});
  table.pin({0});
  EXPECT_EQ(table.victim(), BlockId{1});
  table.release({3});
  EXPECT_EQ(table.victim(), BlockId{3});
  table.retain({3});
  table.unpin({0});
  EXPECT_EQ(table.victim(), BlockId{0});
}

TEST(PageTable, ADeadBlockIsAVictimEvenIfPinned) {
  PageTable table = table_of(2);
  for (std::uint32_t block = 0; block < 2; ++block) {
    table.retain({block});
    table.populate({block});
    table.pin({block});
  }
  EXPECT_EQ(table.victim(), std::nullopt);
  table.release({1});
  EXPECT_EQ(table.victim(), BlockId{1});
}

TEST(PageTable, AFailedEvictionGivesTheLowerTierBack) {
  PageTable table = table_of(1);
  table.retain({0});
  table.populate({0});
  table.evict({0}, Tier::host);
  table.kept({0});
  EXPECT_EQ(table.state({0}), BlockState::resident);
  EXPECT_EQ(table.used(Tier::host), Bytes{});
  EXPECT_EQ(table.victim(), BlockId{0});
}

TEST(PageTable, ACleanBlockCountsOnBothTiersUntilItsCopyIsGivenUp) {
  PageTable table = table_of(1);
  table.place({0}, Tier::ssd);
  table.fetch({0});
  table.copied({0});
  EXPECT_EQ(table.state({0}), BlockState::clean);
  EXPECT_EQ(table.used(Tier::device), kBlockBytes);
  EXPECT_EQ(table.used(Tier::ssd), kBlockBytes);
  EXPECT_EQ(table.copy_on(Tier::ssd), BlockId{0});
  EXPECT_EQ(table.copy_on(Tier::host), std::nullopt);
  table.evict({0}, Tier::ssd);
  EXPECT_EQ(table.used(Tier::ssd), kBlockBytes);
  EXPECT_EQ(table.copy_on(Tier::ssd), std::nullopt);
  table.kept({0});
  EXPECT_EQ(table.state({0}), BlockState::resident);
  EXPECT_EQ(table.used(Tier::ssd), Bytes{});
}

TEST(PageTableDeathTest, ACleanBlockLeavesForWhereItsCopyIsAndIsNotDroppedWithIt) {
  PageTable table = table_of(1);
  table.place({0}, Tier::ssd);
  table.fetch({0});
  table.copied({0});
  EXPECT_DEATH(table.evict({0}, Tier::host), "lower");
  EXPECT_DEATH(table.drop({0}), "kNotAllowed");
}

TEST(PageTableDeathTest, NoTierIsEverOverfilled) {
  PageTable table = table_of(2, {kBlockBytes, Bytes{}, kBlockBytes});
  table.populate({0});
  EXPECT_DEATH(table.populate({1}), "room");
  EXPECT_DEATH(table.evict({0}, Tier::host), "room");
}

// A model that keeps what the table should say in the plainest form: a list in order of arrival.
struct Model {
  struct Block {
    BlockState state = BlockState::empty;
    Tier lower = Tier::device;
    int tensors = 0, pins = 0;
    bool held = false;
    bool takes_its_turn() const { return tensors > 0 || held; }
  };
  std::vector<Block> blocks;
  // Resident blocks by arrival, dead and live ones mixed; each enters again when it changes.
  std::vector<std::uint32_t> order;

  void enter(std::uint32_t block) { order.push_back(block); }
  void leave(std::uint32_t block) { std::erase(order, block); }
  std::optional<BlockId> victim() const {
    for (const bool want_live : {false, true})
      for (const std::uint32_t block : order)
        if ((blocks[block].pins == 0 || !want_live) && blocks[block].takes_its_turn() == want_live)
          return BlockId{block};
    return std::nullopt;
  }
};

void apply(PageTable& table, Model& model, std::uint32_t index, int action, Tier tier) {
  Model::Block& block = model.blocks[index];
  const BlockId id{index};
  const bool listed = on_device(block.state);
  const auto moved = [&](BlockEvent event) {
    const auto to = next(block.state, event);
    if (to) block.state = *to;
    return to.has_value();
  };
  const auto re_enter = [&] {
    if (!listed) return;
    model.leave(index);
    model.enter(index);
  };
  switch (action) {
    case 0:
      if (block.tensors++ == 0) re_enter();
      block.held = false;
      return table.retain(id);
    case 1:
      if (block.tensors == 0) return;
      if (--block.tensors == 0) re_enter();
      return table.release(id);
    case 2:
      ++block.pins;
      return table.pin(id);
    case 3:
      if (block.pins == 0) return;
      --block.pins;
      return table.unpin(id);
    case 4:
      if (!moved(BlockEvent::populate)) return;
      model.enter(index);
      return table.populate(id);
    case 5:
      if (block.state == BlockState::clean) tier = block.lower;
      if (!moved(BlockEvent::evict)) return;
      block.lower = tier;
      model.leave(index);
      return table.evict(id, tier);
    case 6:
      return moved(BlockEvent::evicted) ? table.evicted(id) : void();
    case 7:
      if (!moved(BlockEvent::kept)) return;
      model.enter(index);
      return table.kept(id);
    case 8:
      return moved(BlockEvent::fetch) ? table.fetch(id) : void();
    case 9:
      if (!moved(BlockEvent::fetched)) return;
      model.enter(index);
      return table.fetched(id);
    case 10:
      return moved(BlockEvent::fetch_failed) ? table.fetch_failed(id) : void();
    case 11:
      if (!moved(BlockEvent::copied)) return;
      model.enter(index);
      return table.copied(id);
    case 12:
      return moved(BlockEvent::drop_copy) ? table.drop_copy(id) : void();
    case 13:
      if (block.takes_its_turn()) return table.hold(id);
      block.held = true;
      re_enter();
      return table.hold(id);
    default:
      if (!moved(BlockEvent::drop)) return;
      model.leave(index);
      block.held = false;
      return table.drop(id);
  }
}

TEST(PageTable, ASplitBlockHasItsPlaceOnTheSsdAndItsPiecesTakeTheDeviceOneByOne) {
  PageTable table = table_of(2);
  table.retain({0});
  table.place({0}, Tier::ssd);
  EXPECT_FALSE(table.contains({pieces_of({0}).first, 1}));
  table.split({0});
  EXPECT_TRUE(table.contains(pieces_of({0})));
  EXPECT_FALSE(table.contains({pieces_of({0}).first, kPiecesPerBlock + 1}));
  const BlockId one = pieces_of({0}).first, last{one.value + kPiecesPerBlock - 1};
  for (const BlockId piece : {one, last}) {
    table.fetch(piece);
    table.copied(piece);
    EXPECT_EQ(table.state(piece), BlockState::clean);
  }
  EXPECT_EQ(table.used(Tier::device), kPieceBytes * 2);
  EXPECT_EQ(table.used(Tier::ssd), kBlockBytes);
  EXPECT_EQ(table.copy_on(Tier::ssd), std::nullopt) << "nothing else could have its place";
  EXPECT_EQ(table.victim(), one);
  EXPECT_EQ(table.placed_victim(), one);
  table.drop_copy(one);
  table.check_invariants();
  for (const BlockId piece : {one, last}) {
    table.evict(piece, Tier::ssd);
    table.evicted(piece);
  }
  table.join({0});
  EXPECT_EQ(table.state({0}), BlockState::stored);
  EXPECT_EQ(table.used(Tier::device), Bytes{});
  table.check_invariants();
}

TEST(PageTable, PiecesLiveAndDieWithTheirBlock) {
  PageTable table = table_of(1);
  table.retain({0});
  table.place({0}, Tier::ssd);
  table.split({0});
  const BlockId piece = pieces_of({0}).first;
  table.fetch(piece);
  table.fetched(piece);
  table.release({0});
  EXPECT_EQ(table.dead(), piece);
  table.retain({0});
  EXPECT_EQ(table.dead(), std::nullopt);
  table.check_invariants();
}

// Two pieces that come back and six that do not, in a device with room for so many.
TEST(PageTable, WhatComesBackStaysUntilHardlyAnythingElseIsThere) {
  PageTable table({.device = kPieceBytes * 16, .host = {}, .ssd = kBlockBytes});
  table.add_blocks(1, kBlockBytes);
  table.retain({0});
  table.place({0}, Tier::ssd);
  table.split({0});
  const auto piece = [](std::uint32_t place) { return BlockId{pieces_of({0}).first.value + place}; };
  for (std::uint32_t place = 0; place < 8; ++place) {
    table.comes_back(piece(place), place < 2);
    table.fetch(piece(place));
    table.copied(piece(place));
  }
  std::vector<std::uint32_t> left;
  while (const auto victim = table.victim()) {
    table.check_invariants();
    left.push_back(place_in_block(*victim));
    table.evict(*victim, Tier::ssd);
    table.evicted(*victim);
  }
  EXPECT_EQ(std::vector(left.begin(), left.begin() + 5), (std::vector<std::uint32_t>{2, 3, 4, 5, 6}));
  std::ranges::sort(left.begin() + 5, left.begin() + 7);
  EXPECT_EQ(std::vector(left.begin() + 5, left.end()), (std::vector<std::uint32_t>{0, 1, 7}));
  table.comes_back(piece(0), true);
  table.fetch(piece(0));
  table.copied(piece(0));
  table.pin(piece(0));
  EXPECT_EQ(table.victim(), std::nullopt);
}

TEST(PageTable, WhatIsTouchedWhileItIsParkedIsTheLastVictim) {
  PageTable table({.device = kBlockBytes * 32, .host = kBlockBytes * 8, .ssd = {}});
  table.add_blocks(7, kBlockBytes);
  for (std::uint32_t block = 0; block < 7; ++block) {
    table.retain({block});
    table.populate({block});
  }
  table.pin({1});
  std::vector<std::uint32_t> parked;
  while (const auto next = table.next_to_park()) {
    table.park(*next);
    parked.push_back(next->value);
  }
  EXPECT_EQ(parked, (std::vector<std::uint32_t>{0, 2, 3, 4})) << "an eighth of the device";
  table.touched({0});
  table.touched({3});
  table.touched({6});  // It is not parked.
  table.check_invariants();
  std::vector<std::uint32_t> left;
  while (const auto victim = table.victim()) {
    left.push_back(victim->value);
    table.evict(*victim, Tier::host);
    table.evicted(*victim);
    table.check_invariants();
  }
  EXPECT_EQ(left, (std::vector<std::uint32_t>{2, 4, 5, 6, 0, 3}));
}

TEST(PageTableProperty, AgreesWithAPlainModelUnderAnyOrderOfCalls) {
  EXPECT_TRUE(rc::check([] {
    constexpr std::uint32_t kBlocks = 6;
    PageTable table = table_of(kBlocks);
    Model model{std::vector<Model::Block>(kBlocks), {}};
    const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, bool>>>(rc::gen::tuple(
        rc::gen::inRange(0, static_cast<int>(kBlocks)), rc::gen::inRange(0, 15), rc::gen::arbitrary<bool>()));
    for (const auto& [block, action, host] : steps) {
      apply(table, model, static_cast<std::uint32_t>(block), action, host ? Tier::host : Tier::ssd);
      table.check_invariants();
      RC_ASSERT(table.victim() == model.victim());
      for (std::uint32_t index = 0; index < kBlocks; ++index)
        RC_ASSERT(table.state({index}) == model.blocks[index].state);
      for (const Tier lower : {Tier::host, Tier::ssd})
        RC_ASSERT(table.copy_on(lower).has_value() == std::ranges::any_of(model.blocks, [&](const Model::Block& each) {
                    return each.state == BlockState::clean && each.lower == lower;
                  }));
    }
  }));
}

}  // namespace
}  // namespace spillway
