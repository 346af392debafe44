#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/executor_script.h"

namespace spillway {
namespace {

// One tensor that a plan brings back, its copy kept, when kernel 0 starts, and evicts when kernel 1 has ended.
struct KeptCopy : ExecutorScript {
  explicit KeptCopy(std::uint32_t ssd = 10, std::uint32_t device = 4)
      : ExecutorScript("s-------", {device, 0, ssd}, {.window_blocks = 1}) {
    Plan plan;
    plan.prefetches = {{{0}, {0}, true}};
    plan.evictions = {{{0}, {1}, Tier::ssd}};
    adopt(executor, plan, 2);
    tell(Allocated{{0}, {{0}, 1}});
    kernel(0, {});
    come = last_move();
    EXPECT_TRUE(come.clean);
  }
  void kernel(std::uint32_t kernel, std::vector<BlockAccess> accesses) {
    if (kernel > 0) tell(KernelDone{{{0}}});
    tell(KernelReady{{{0}}, {kernel}, accesses});
  }

  Move come;
};

TEST(CleanCopies, WhatNobodyHasWrittenLeavesAsClean) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(0), BlockState::clean);
  run.kernel(1, {{.blocks = {{0}, 1}}});
  run.tell(KernelDone{{{0}}});
  EXPECT_TRUE(run.last_move().clean);
  run.tell(MoveDone{run.last_move().id});
  EXPECT_EQ(run.state(0), BlockState::stored);
  EXPECT_EQ(run.executor.dropped_clean(), kBlockBytes);
  EXPECT_EQ(run.executor.moved()(Tier::device, Tier::ssd), Bytes{});
}

TEST(CleanCopies, WhatNoPlanBringsKeepsItsCopyWhereThePolicySaysSo) {
  Plan moves;
  moves.prefetches = {{{1}, {0}}};
  for (const bool keeps : {false, true})
    for (const bool planned : {false, true}) {
      ExecutorScript run("s-", {4, 0, 10}, {.migration = {.keeps_copies = keeps}});
      adopt(run.executor, moves, 1);
      if (!planned) adopt(run.executor, {}, 1);  // The plan is given up.
      run.tell(Allocated{{0}, {{0}, 1}});
      run.tell(Faulted{{0}, {{0}, 1}});
      EXPECT_EQ(run.last_move().clean, keeps);
    }
}

TEST(CleanCopies, AKernelThatWritesMakesTheCopyWorthless) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.kernel(1, {{.blocks = {{0}, 1}, .writes = true, .sparse = true}});
  EXPECT_TRUE(std::ranges::any_of(run.commands,
                                  [](const Command& command) { return std::holds_alternative<Discard>(command); }));
  EXPECT_EQ(run.state(0), BlockState::resident);
  run.tell(KernelDone{{{0}}});
  EXPECT_FALSE(run.last_move().clean);
}

TEST(CleanCopies, WhatArrivesForAKernelThatWritesHasNoCopyLeft) {
  KeptCopy run;
  run.kernel(1, {{.blocks = {{0}, 1}, .writes = true}});
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(0), BlockState::resident);
  EXPECT_EQ(run.executor.table().used(Tier::ssd), Bytes{});
}

// The machine maps the first blocks of a move before it tells of the end of all.
TEST(CleanCopies, WhatIsWrittenBeforeItsArrivalIsToldHasNoCopyLeft) {
  KeptCopy run;
  run.tell(KernelReady{{{1}}, kNoKernel, std::vector<BlockAccess>{{.blocks = {{0}, 1}, .writes = true}}, {}, false});
  run.tell(KernelDone{{{1}}});
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(0), BlockState::resident);
  EXPECT_EQ(run.executor.table().used(Tier::ssd), Bytes{});
}

TEST(CleanCopies, WhatIsCleanLeavesThoughTheSsdTakesNoMore) {
  KeptCopy run(10, 7);
  run.tell(Allocated{{1}, {{1}, 7}});
  for (std::uint32_t block = 1; block < 7; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  run.tell(MoveDone{run.come.id});  // So others are victims before it.
  run.tell(Faulted{{1}, {{7}, 1}});
  for (int failure = 0; failure < 4; ++failure) {
    ASSERT_FALSE(run.last_move().clean) << failure;
    run.tell(MoveFailed{run.last_move().id});
  }
  EXPECT_TRUE(run.last_move().clean);
  EXPECT_FALSE(run.executor.failure());
}

TEST(CleanCopies, CopiesGiveWayToWhatMustLeave) {
  KeptCopy run(1);
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{1}, 4}});
  for (std::uint32_t block = 1; block < 4; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  EXPECT_EQ(run.state(0), BlockState::clean);
  const BlockAccess keeps[] = {{.blocks = {{0}, 1}}};
  run.tell(KernelReady{{{2}}, kNoKernel, keeps});  // It stays, so another one must leave.
  run.tell(Faulted{{1}, {{4}, 1}});
  EXPECT_TRUE(run.last_move().to == Tier::ssd && !run.last_move().clean);
  EXPECT_EQ(run.state(0), BlockState::resident);
  EXPECT_FALSE(run.executor.failure());
}

TEST(CleanCopies, ACopyStaysWhereAnotherBlockCouldNotLeave) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{1}, 5}});
  for (std::uint32_t block = 1; block < 4; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  const BlockAccess keeps[] = {{.blocks = {{0}, 1}}};
  run.tell(KernelReady{{{2}}, kNoKernel, keeps});
  run.tell(Faulted{{1}, {{4}, 1}});
  run.tell(MoveFailed{run.last_move().id, true});
  EXPECT_EQ(run.state(0), BlockState::clean);
}

TEST(CleanCopies, WhatIsMadeInItsBlockMakesTheCopyWorthless) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{0}, 1}});
  EXPECT_EQ(run.state(0), BlockState::resident);
  EXPECT_EQ(run.executor.table().used(Tier::ssd), Bytes{});
}

// Tells it, and the end of every move that it leads to; returns these moves.
std::vector<Move> settled(Executor& executor, const Event& first) {
  std::vector<Move> moves;
  std::vector<Event> events{first};
  for (std::size_t at = 0; at < events.size(); ++at) {
    std::vector<Command> commands;
    executor.on(Event(events[at]), commands);
    for (const Command& command : commands)
      if (const auto* move = std::get_if<Move>(&command)) {
        moves.push_back(*move);
        events.push_back(MoveDone{move->id});
      }
  }
  return moves;
}

TEST(CleanCopies, WhatIsCleanLeavesForHostMemoryAsLongAsThatHasRoom) {
  Executor executor(table_of("ssss", {2, 1, 10}),
                    {.window_blocks = 1, .migration = {.keeps_copies = true, .chunk_blocks = 1}});
  std::vector<std::pair<Tier, bool>> left;  // where to, and whether clean
  settled(executor, Allocated{{0}, {{0}, 4}});
  for (std::uint32_t block = 0; block < 4; ++block)
    for (const Move& move : settled(executor, Faulted{{0}, {{block}, 1}}))
      if (move.to != Tier::device) left.emplace_back(move.to, move.clean);
  EXPECT_EQ(left, (std::vector<std::pair<Tier, bool>>{{Tier::host, false}, {Tier::ssd, true}}));
}

TEST(CleanCopies, ADeadTensorsCopyIsGivenUpAtOnce) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Freed{{0}, {{0}, 1}});
  EXPECT_EQ(run.state(0), BlockState::empty);
  EXPECT_EQ(run.executor.table().used(Tier::ssd), Bytes{});
}

// Of twelve frames nine hold what the plan keeps and two what it does not know, which is idle by the third iteration,
// when a tensor of three blocks comes back. Host memory has room.
std::vector<Move> moves_for_what_comes_back(bool keeps_copies) {
  constexpr BlockRange kBack{{0}, 3}, kIdle{{3}, 2}, kKept{{5}, 9};
  Plan plan;
  plan.prefetches = {{{0}, {0}}};
  const std::vector<BlockRange> homes{kBack, kKept};
  const std::vector<Foresight::Row> rows{{kBack, {{0}}}, {kKept, {{1}}}};
  Executor executor(table_of("sssssddddddddd", {12, 4, 20}),
                    {.window_blocks = 1, .migration = {.keeps_copies = keeps_copies}});
  adopt(executor, plan, 2, homes, rows, {});
  settled(executor, Allocated{{0}, kBack});
  settled(executor, Allocated{{1}, kKept});
  settled(executor, Allocated{{2}, kIdle});
  for (BlockId block = kIdle.first; block < kIdle.end(); ++block.value) settled(executor, Faulted{{0}, {block, 1}});
  for (std::uint32_t kernel = 0; kernel < 44; ++kernel) {  // Until nobody keeps what was faulted on.
    settled(executor, KernelReady{{{0}}, kernel < 40 ? kNoKernel : KernelId{kernel % 2}, {}});
    settled(executor, KernelDone{{{0}}});
  }
  std::vector<Move> moves = settled(executor, KernelReady{{{0}}, {0}, {}});
  for (const Move& move : settled(executor, KernelDone{{{0}}})) moves.push_back(move);
  return moves;
}

TEST(CleanCopies, WhatIsIdleLeavesForTheSsdAndIsNotWrittenIfThatHasIt) {
  for (const bool keeps_copies : {false, true}) {
    std::vector<BlockId> left;
    for (const Move& move : moves_for_what_comes_back(keeps_copies)) {
      if (move.to == Tier::device) continue;
      left.push_back(move.blocks.first);
      EXPECT_TRUE(move.to == Tier::ssd && move.blocks.count == 1 && move.clean == keeps_copies);
    }
    EXPECT_EQ(left, (std::vector<BlockId>{{3}, {4}}));
  }
}

}  // namespace
}  // namespace spillway
