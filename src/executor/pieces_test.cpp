#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "executor/executor_script.h"

namespace spillway {
namespace {

// A kernel that uses two blocks more than the device has room for, and has gone through all of them once: the first two
// have left while it ran. See Note [Pieces].
struct Oversized : ExecutorScript {
  explicit Oversized(std::uint32_t device = 2)
      : ExecutorScript(std::string(device + 2, 's'), {device, 0, 20}, {.window_blocks = 1}) {
    allocate(0, device + 2);
    tell(KernelReady{{{0}}, kNoKernel, {}});
    for (std::uint32_t block = 0; block < device + 2; ++block) fault({block});
    EXPECT_EQ(state(0), BlockState::stored);
  }
  void finish_moves() {
    while (finished < moves().size()) tell(MoveDone{moves()[finished++].id});
  }
  void fault(BlockId block) {
    tell(Faulted{{0}, {block, 1}});
    finish_moves();
  }
  BlockId piece(std::uint32_t block, std::uint32_t place) const { return {pieces_of({block}).first.value + place}; }
  BlockState state_of(BlockId id) const { return executor.table().state(id); }
  template <class T>
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(commands, [](const Command& one) { return std::holds_alternative<T>(one); }));
  }

  std::size_t finished = 0;
};

TEST(Pieces, ABlockThatLeftWhileTheKernelRanComesBackInPieces) {
  Oversized run;
  EXPECT_EQ(run.count<Split>(), 0u) << "each block came for the first time";
  run.fault({0});
  EXPECT_EQ(run.state(0), BlockState::in_pieces);
  EXPECT_EQ(run.count<Split>(), 1u) << "who waits faults again, on a piece";
  run.fault(run.piece(0, 5));
  EXPECT_EQ(run.state_of(run.piece(0, 5)), BlockState::clean);
  EXPECT_EQ(run.state_of(run.piece(0, 6)), BlockState::stored);
  EXPECT_LE(run.executor.table().used(Tier::device), kBlockBytes + kPieceBytes);
  run.executor.check_invariants();
}

TEST(Pieces, WhatIsTouchedWhileItIsParkedStaysAndAnotherLeaves) {
  for (const bool is_touched : {false, true}) {
    Oversized run(8);
    run.fault({0});
    run.finish_moves();
    EXPECT_EQ(run.count<Park>(), 1u);
    const BlockId parked = std::get<Park>(run.commands.back()).block;
    EXPECT_EQ(run.state_of(parked), BlockState::resident);
    if (is_touched) run.tell(Touched{parked});
    run.fault({1});
    for (const std::uint32_t block : {0u, 1u})
      for (std::uint32_t place = 0; place < kPiecesPerBlock; place += 2) run.fault(run.piece(block, place));
    EXPECT_EQ(run.state_of(parked), is_touched ? BlockState::resident : BlockState::stored);
    run.executor.check_invariants();
  }
}

TEST(Pieces, MoreComeWhereOneAfterTheOtherIsWanted) {
  Oversized run;
  run.fault({0});
  std::vector<std::uint32_t> came;
  for (std::uint32_t place = 0; place < kPiecesPerBlock;) {
    run.fault(run.piece(0, place));
    std::uint32_t end = place;
    while (end < kPiecesPerBlock && on_device(run.state_of(run.piece(0, end)))) ++end;
    ASSERT_GT(end, place);
    came.push_back(end - place);
    place = end;
  }
  EXPECT_EQ(came, (std::vector<std::uint32_t>{1, 2, 4, 8, 16, 32, 64, 1}));
}

TEST(Pieces, WhatWasOnlyReadLeavesAtNoCostAndWhatWasWrittenIsWritten) {
  Oversized run;
  run.fault({0});
  run.fault(run.piece(0, 0));
  run.tell(Allocated{{9}, {{0}, 1}});  // Another tensor's end is made in the same block.
  EXPECT_EQ(run.state_of(run.piece(0, 0)), BlockState::resident);
  run.fault(run.piece(0, 4));
  run.tell(KernelDone{{{0}}});
  run.commands.clear();
  run.finished = 0;
  run.tell(Faulted{{0}, {{0}, 1}});  // It is wanted whole now.
  std::vector<bool> clean;
  for (const Move& move : run.moves())
    if (move.from == Tier::device && is_piece(move.blocks.first)) clean.push_back(move.clean);
  EXPECT_EQ(clean, (std::vector<bool>{false, true}));
  EXPECT_EQ(run.count<Join>(), 0u);
  run.finish_moves();
  EXPECT_EQ(run.count<Join>(), 1u);
  EXPECT_EQ(run.state(0), BlockState::resident);
  run.executor.check_invariants();
}

TEST(Pieces, AKernelThatIsReadyWhileAnotherUsesABlockInPiecesDoesNotWaitForAllOfIt) {
  Oversized run;
  run.fault({0});
  run.commands.clear();
  const std::vector<BlockAccess> uses{{.blocks = {{0}, 1}}};
  run.tell(KernelReady{{{1}}, kNoKernel, uses});
  ASSERT_EQ(run.count<Launch>(), 1u);
  EXPECT_EQ(run.state(0), BlockState::in_pieces);
}

TEST(Pieces, TheirDeathFreesTheDeviceAtOnceAndTheSsdOnceNoDropCanBeRefused) {
  Oversized run;
  run.fault({0});
  run.fault(run.piece(0, 0));
  const Bytes below = run.executor.table().used(Tier::ssd);
  run.tell(Freed{{0}, {{0}, 1}});
  EXPECT_EQ(run.state_of(run.piece(0, 0)), BlockState::empty);
  EXPECT_EQ(run.executor.table().used(Tier::ssd), below);
  run.tell(Faulted{kNobody, {run.piece(0, 0), 1}});  // Refused: a new tensor lives there, which is told next.
  EXPECT_EQ(run.state_of(run.piece(0, 0)), BlockState::resident);
  run.tell(Allocated{{9}, {{0}, 1}});
  EXPECT_EQ(run.state(0), BlockState::in_pieces);
  run.tell(Freed{{9}, {{0}, 1}});
  run.tell(KernelDone{{{0}}});
  EXPECT_EQ(run.state(0), BlockState::empty);
  EXPECT_EQ(run.executor.table().used(Tier::ssd), below - kBlockBytes);
  run.executor.check_invariants();
}

TEST(Pieces, AKernelThatUsesMoreThanItSaidHoldsNothing) {
  ExecutorScript run("dsss", {3, 0, 10}, {.window_blocks = 1});
  run.allocate(0, 4);
  const std::vector<BlockAccess> says{{.blocks = {{0}, 1}}};
  run.tell(KernelReady{{{0}}, kNoKernel, says});
  std::size_t finished = 0;
  const auto fault = [&](BlockId block) {
    run.tell(Faulted{{0}, {block, 1}});
    while (finished < run.moves().size()) run.tell(MoveDone{run.moves()[finished++].id});
  };
  for (const std::uint32_t block : {1u, 2u, 3u}) fault({block});
  EXPECT_EQ(run.state(0), BlockState::resident) << "it was granted";
  fault({1});
  EXPECT_EQ(run.state(1), BlockState::in_pieces);
  EXPECT_FALSE(run.executor.table().pinned({0}));
}

}  // namespace
}  // namespace spillway
