#include "machines/sim/ftl.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "machines/sim/flash.h"
#include "memory/pieces.h"

namespace spillway {
namespace {

FlashWork written(Ftl& ftl, std::uint32_t block, PageRun pages) {
  const auto work = ftl.write({block}, pages);
  EXPECT_TRUE(work);
  return work.value_or(FlashWork{});
}

TEST(Ftl, WhatIsWrittenOnceIsNeverMoved) {
  Ftl ftl({.superblocks = 4, .pages = 8, .reserve = 1});
  EXPECT_EQ(written(ftl, 0, {0, 20}), (FlashWork{.written = 20}));
  EXPECT_EQ(ftl.valid_pages(), 20u);
  EXPECT_EQ(ftl.free_superblocks(), 1u);
  ftl.check_invariants();
}

TEST(Ftl, TheSuperblockWithTheFewestValidPagesIsWrittenAgainAndErased) {
  Ftl ftl({.superblocks = 4, .pages = 8, .reserve = 1});
  written(ftl, 0, {0, 8});  // superblock 0
  written(ftl, 1, {0, 8});  // 1
  written(ftl, 2, {0, 8});  // 2
  ftl.discard({0}, {2, 3});
  ftl.discard({1}, {0, 6});
  EXPECT_EQ(written(ftl, 3, {0, 1}), (FlashWork{.written = 1, .moved = 2, .erased = 1})) << "those of superblock 1";
  ftl.check_invariants();
  EXPECT_EQ(written(ftl, 3, {1, 5}), (FlashWork{.written = 5})) << "what is left of the open one";
  EXPECT_EQ(ftl.valid_pages(), 5u + 2 + 8 + 6);
}

TEST(Ftl, WhatIsDeadCostsNothingButErasing) {
  Ftl ftl({.superblocks = 3, .pages = 4, .reserve = 1});
  FlashWork all;
  for (std::uint32_t round = 0; round < 10; ++round) {
    all += written(ftl, 0, {0, 4});
    ftl.discard({0}, {0, 4});
  }
  EXPECT_EQ(all, (FlashWork{.written = 40, .moved = 0, .erased = 8})) << "two superblocks hold, one is in reserve";
  EXPECT_EQ(all.write_amplification(), 1.0);
}

TEST(Ftl, TheLeastErasedFreeSuperblockIsOpened) {
  Ftl ftl({.superblocks = 8, .pages = 4, .reserve = 3});
  written(ftl, 0, {0, 8});  // two superblocks that stay
  for (std::uint32_t round = 0; round < 100; ++round) {
    written(ftl, 1, {0, 4});
    ftl.discard({1}, {0, 4});
  }
  auto times = ftl.erased();
  ASSERT_EQ(times.size(), 8u);
  times.erase(times.begin(), times.begin() + 2);
  EXPECT_LE(std::ranges::max(times), std::ranges::min(times) + 1);
  EXPECT_GT(std::ranges::min(times), 10u);
}

TEST(Ftl, WhatDoesNotFitIsRefusedAndChangesNothing) {
  Ftl ftl({.superblocks = 4, .pages = 4, .reserve = 2});
  written(ftl, 0, {0, 6});
  EXPECT_FALSE(ftl.write({1}, {0, 3}));
  EXPECT_EQ(ftl.valid_pages(), 6u);
  EXPECT_EQ(written(ftl, 0, {0, 8}).written, 8u) << "in place of what it had";
  ftl.check_invariants();
}

// Desnoyers (Analytic modeling of SSD write performance, 2012), for greedy collection where all U logical pages are as
// likely to be written next. A superblock of b pages is collected with j of them valid, where
// b (H_b - H_j) / (b - j) = alpha, the physical pages for each logical one. Then b - j new ones cost b.
double analytic_write_amplification(double alpha, double b) {
  const auto harmonic = [](double n) { return std::log(n) + 0.57721566490153286 + 1 / (2 * n) - 1 / (12 * n * n); };
  double low = 0.5, high = b - 0.5;
  for (int step = 0; step < 100; ++step) {
    const double j = (low + high) / 2;
    (b * (harmonic(b) - harmonic(j)) / (b - j) > alpha ? low : high) = j;
  }
  return b / (b - low);
}

TEST(Ftl, UniformlyRandomWritesCostWhatTheFormulaSays) {
  constexpr std::uint32_t kSuperblocks = 512, kPages = 256, kReserve = 2, kLogical = 100'824;  // 131072 / 1.3
  constexpr std::uint32_t kPagesOfBlock = 512;
  const double expected =
      analytic_write_amplification(static_cast<double>((kSuperblocks - kReserve) * kPages) / kLogical, kPages);
  EXPECT_NEAR(expected, 2.37, 0.005);
  Ftl ftl({.superblocks = kSuperblocks, .pages = kPages, .reserve = kReserve});
  std::mt19937 random(1);
  const auto write = [&](std::uint32_t page) { return written(ftl, page / kPagesOfBlock, {page % kPagesOfBlock, 1}); };
  for (std::uint32_t page = 0; page < kLogical; ++page) write(page);
  for (std::uint32_t round = 0; round < 3 * kLogical; ++round) write(static_cast<std::uint32_t>(random() % kLogical));
  FlashWork all;
  for (std::uint32_t round = 0; round < 3 * kLogical; ++round)
    all += write(static_cast<std::uint32_t>(random() % kLogical));
  EXPECT_NEAR(all.write_amplification(), expected, 0.01 * expected);
  ftl.check_invariants();
}

// Beside a map of which pages hold something.
RC_GTEST_PROP(FtlProperty, WhateverIsWrittenAndDiscardedItHoldsThosePagesAndFindsRoomForAllItCanHold, ()) {
  const Ftl::Shape shape{.superblocks = *rc::gen::inRange(2u, 12u),
                         .pages = *rc::gen::inRange(1u, 9u),
                         .reserve = *rc::gen::inRange(1u, 4u)};
  RC_PRE(shape.superblocks > shape.reserve);
  Ftl ftl(shape);
  constexpr std::uint32_t kBlocks = 5, kPagesOfBlock = 12;
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> held;
  std::uint64_t erased = 0, before = ftl.free_superblocks();
  const auto steps = *rc::gen::inRange(1, 200);
  for (int step = 0; step < steps; ++step) {
    const auto block = *rc::gen::inRange(0u, kBlocks);
    const auto first = *rc::gen::inRange(0u, kPagesOfBlock);
    const auto count = *rc::gen::inRange(1u, kPagesOfBlock - first + 1);
    const bool writes = *rc::gen::inRange(0, 3) > 0;
    auto after = held;
    for (std::uint32_t page = first; page < first + count; ++page)
      writes ? void(after[{block, page}] = true) : void(after.erase({block, page}));
    if (writes) {
      const auto work = ftl.write({block}, {first, count});
      RC_ASSERT(work.has_value() == (after.size() <= ftl.most_pages()));
      if (!work) after = held;
      RC_ASSERT(!work || work->written == count);
      if (work) erased += work->erased;
    } else {
      ftl.discard({block}, {first, count});
    }
    held = after;
    RC_ASSERT(ftl.valid_pages() == held.size());
    ftl.check_invariants();
  }
  const auto times = ftl.erased();
  RC_ASSERT(std::accumulate(times.begin(), times.end(), std::uint64_t{0}) == erased);
  RC_ASSERT(ftl.free_superblocks() <= before);
}

FlashGeometry small_flash() {
  return {.superblocks = 3,
          .pages = 1024,
          .reserve = 1,
          .page = 4_KiB,
          .read_rate = 4e9,
          .program_rate = 1e9,
          .erase_time = Nanos{1'000'000}};
}

// 2 MiB at 1 GB/s; the third write opens the last superblock but one and moves the 512 pages that were left of another.
TEST(Flash, AWriteTakesItsPagesAndThoseItMovesAndTheErasing) {
  Flash flash(small_flash());
  const Bytes block{2_MiB};
  const double once = static_cast<double>(block.value);
  for (std::uint32_t id = 0; id < 4; ++id) EXPECT_DOUBLE_EQ(*flash.write({id}, block), once);
  flash.discard({1}, block);
  EXPECT_DOUBLE_EQ(*flash.write({4}, block), once + once + once / 4 + 1e6);
  EXPECT_EQ(flash.work(), (FlashWork{.written = 5 * 512, .moved = 512, .erased = 1}));
  EXPECT_DOUBLE_EQ(flash.read_ns(block), once / 4);
}

TEST(Flash, PiecesHaveTheirOwnPagesOfTheBlock) {
  Flash flash(small_flash());
  const BlockId block{7};
  flash.place(block, 2_MiB);
  const BlockId piece{pieces_of(block).first.value + 3};
  flash.discard(piece, kPieceBytes);
  flash.write(piece, kPieceBytes);
  EXPECT_EQ(flash.work(), (FlashWork{.written = 4}));
  EXPECT_EQ(flash.valid_pages(block), 512u);
  flash.discard(block, 2_MiB);
  EXPECT_EQ(flash.valid_pages(block), 0u);
}

}  // namespace
}  // namespace spillway
