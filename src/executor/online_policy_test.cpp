#include "executor/online_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <variant>
#include <vector>

#include "executor/executor_script.h"

namespace spillway {
namespace {

// Brings blocks 1 to 3 once a kernel has faulted.
class Bringer final : public OnlinePolicy {
 public:
  void allocated(const Allocated&, const PageTable&) override {}
  void freed(const Freed&) override {}
  std::vector<BlockRange> faulted(const Faulted&, const PageTable&) override { return {{{1}, 3}}; }
  Forecast kernel_ready(const KernelReady&, bool) override { return {}; }
  bool learns_from_faults_alone() const override { return true; }
};

std::size_t launches(const ExecutorScript& run) {
  return static_cast<std::size_t>(std::ranges::count_if(
      run.commands, [](const Command& command) { return std::holds_alternative<Launch>(command); }));
}

TEST(OnlinePolicy, WhatAFaultSaysIsBroughtBehindTheFault) {
  ExecutorScript run("ssss", {4, 0, 10}, {}, std::make_unique<Bringer>());
  run.allocate(0, 4);
  const std::vector<BlockAccess> all{{{{0}, 4}}};
  run.tell(KernelReady{{{0}, 0}, kNoKernel, all});
  EXPECT_EQ(launches(run), 1u) << "it faults on what is away";
  EXPECT_TRUE(run.moves().empty());
  run.tell(Faulted{{0}, {{0}, 1}});
  const std::vector<Move> moves = run.moves();
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].blocks, (BlockRange{{0}, 1}));
  EXPECT_EQ(moves[0].urgency, Urgency::fault);
  EXPECT_EQ(moves[1].blocks, (BlockRange{{1}, 1}));
  EXPECT_EQ(moves[1].urgency, Urgency::plan);
}

TEST(OnlinePolicy, KernelsThatFaultWaitForWhatIsOnItsWayAndNotForWhatWaitsForItsTurn) {
  ExecutorScript run("ssss", {4, 0, 10}, {}, std::make_unique<Bringer>());
  run.allocate(0, 4);
  const std::vector<BlockAccess> first{{{{0}, 1}}}, second{{{{3}, 1}}}, third{{{{1}, 1}}};
  run.tell(KernelReady{{{0}, 0}, kNoKernel, first});
  run.tell(Faulted{{0}, {{0}, 1}});
  const MoveId fault = run.moves()[0].id, prefetch = run.moves()[1].id;
  run.tell(MoveDone{fault});
  run.tell(KernelDone{{{0}, 0}});
  run.tell(KernelReady{{{0}, 1}, kNoKernel, second});
  EXPECT_EQ(launches(run), 2u);
  run.tell(KernelDone{{{0}, 1}});
  run.tell(KernelReady{{{0}, 2}, kNoKernel, third});
  EXPECT_EQ(launches(run), 2u);
  run.tell(MoveDone{prefetch});
  EXPECT_EQ(launches(run), 3u);
}

}  // namespace
}  // namespace spillway
