#include "session/live_status.h"

#include <gtest/gtest.h>

#include "session/hook_side.h"
#include "session/shared_session.h"

namespace spillway {
namespace {

TEST(LiveStatus, SaysWhatHappenedBetweenTwoMoments) {
  auto session = SharedSession::create();
  ASSERT_TRUE(session);
  SessionState& state = (*session)->state;
  const auto before = moment_of(state, Nanos{1'000'000'000});
  EXPECT_EQ(status_text(**session, before, before, 120),
            "before the first iteration  stall 0 %  device 0 B  ssd 0 B  in 0.0, out 0.0 GB/s");
  state.iterations.add({.duration = Nanos{1'500'000'000}, .faults = 4});
  add_plan(**session, {.policy = "g10"});
  MemoryFigures memory{.stall = Nanos{500'000'000}, .held = {.device = 824_MiB, .ssd = 100_MiB}};
  memory.moved(Tier::device, Tier::ssd) = Bytes{3'000'000'000};
  memory.moved(Tier::host, Tier::device) = Bytes{1'000'000'000};
  state.memory.store(memory);
  const auto now = moment_of(state, Nanos{3'000'000'000});
  EXPECT_EQ(status_text(**session, before, now, 120),
            "iteration 1, 1.500 s, planned  stall 25 %  device 824 MiB  ssd 100 MiB  in 0.5, out 1.5 GB/s");
  end_plan(**session, PlanEnd::slower);
  EXPECT_TRUE(status_text(**session, before, now, 120).contains("iteration 1, 1.500 s  stall"));
  (*session)->config.host_budget_bytes = 1;
  EXPECT_TRUE(status_text(**session, before, now, 120).contains("  host 0 B  "));
}

TEST(LiveStatus, SaysAllOfItInTheColumnsOfAnOrdinaryTerminal) {
  auto session = SharedSession::create();
  ASSERT_TRUE(session);
  SessionState& state = (*session)->state;
  const auto before = moment_of(state, {});
  for (int i = 0; i < 1234; ++i) state.iterations.add({.duration = Nanos{12'345'000'000}});
  add_plan(**session, {.policy = "g10"});
  MemoryFigures memory{.held = {.device = 20_GiB, .ssd = 824_MiB}};
  memory.moved(Tier::device, Tier::ssd) = Bytes{3'000'000'000};
  state.memory.store(memory);
  const auto now = moment_of(state, Nanos{2'000'000'000});
  EXPECT_EQ(status_text(**session, before, now, 79),
            "it 1234 12.35 s plan stall 0 % dev 20G ssd 824M in 0.0 out 1.5 GB/s");
  (*session)->config.host_budget_bytes = 1;
  memory.held.host = 5_GiB;
  state.memory.store(memory);
  EXPECT_EQ(status_text(**session, before, now, 79),
            "it 1234 12.35 s plan stall 0 % dev 20G host 5.0G ssd 824M in 0.0 out 1.5 GB/s");
  EXPECT_EQ(status_text(**session, before, now, 20).size(), 20u);
}

}  // namespace
}  // namespace spillway
