#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "session/hook_side.h"
#include "session/shared_session.h"

namespace spillway {
namespace {

struct SessionTest : testing::Test {
  Result<SharedSession> made = SharedSession::create();
  Session* hook = nullptr;
  void SetUp() override {
    ASSERT_TRUE(made) << made.error().message;
    ::setenv(kSessionVariable, made->path().c_str(), 1);
    hook = open_session();
    ASSERT_NE(hook, nullptr);
  }
  void TearDown() override { ::unsetenv(kSessionVariable); }
};

TEST_F(SessionTest, WhatTheHookWritesTheSupervisorReads) {
  (*made)->config.device_budget_bytes = 77;
  EXPECT_EQ(hook->config.device_budget_bytes, 77u);
  hook->state.memory.store({.faults = 3});
  raise_peak(hook->state.refused_bytes, 9);
  raise_peak(hook->state.refused_bytes, 4);
  const SessionState& seen = (*made)->state;
  EXPECT_EQ(seen.memory.load().faults, 3u);
  EXPECT_EQ(seen.refused_bytes.load(), 9u);
}

TEST_F(SessionTest, TheFirstProcessOwnsItAndTheOthersAreNamed) {
  EXPECT_TRUE(claim_ownership(*hook));
  EXPECT_TRUE(claim_ownership(*hook)) << "the same process may ask again";
  const pid_t child = ::fork();
  if (child == 0) {
    const bool mine = claim_ownership(*hook);
    if (!mine) register_unmanaged(*hook);
    ::_exit(mine ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ((*made)->state.owner_pid.load(), ::getpid());
  EXPECT_EQ((*made)->state.unmanaged_count.load(), 1u);
  EXPECT_EQ((*made)->state.unmanaged[0].pid.load(), child);
  EXPECT_TRUE((*made)->state.unmanaged[0].name.get().contains("session_test"));
}

TEST_F(SessionTest, CountsGoOnWhenTheTablesAreFull) {
  for (std::size_t i = 0; i < kMaxUnmanaged + 3; ++i) register_unmanaged(*hook);
  for (std::size_t i = 0; i < kMaxNotices + 3; ++i) add_notice(*hook, std::to_string(i));
  EXPECT_EQ((*made)->state.unmanaged_count.load(), kMaxUnmanaged + 3);
  EXPECT_EQ((*made)->state.notices[kMaxNotices - 1].get(), std::to_string(kMaxNotices - 1));
}

TEST_F(SessionTest, ANoticeIsGivenOnce) {
  for (const char* notice : {"first", "second", "first"}) add_notice(*hook, notice);
  EXPECT_EQ((*made)->state.notice_count.load(), 2u);
}

TEST_F(SessionTest, TheFirstErrorStays) {
  EXPECT_EQ((*made)->state.error.get(), "");
  EXPECT_TRUE((*made)->state.error.set("first"));
  EXPECT_FALSE((*made)->state.error.set("second"));
  EXPECT_EQ((*made)->state.error.get(), "first");
}

TEST_F(SessionTest, ATextTooLongIsCut) {
  EXPECT_TRUE((*made)->state.notices[0].set(std::string(10'000, 'x')));
  EXPECT_EQ((*made)->state.notices[0].get(), std::string(512, 'x'));
}

TEST_F(SessionTest, AFewIterationsOccupyAFewPages) {
  for (int i = 0; i < 10; ++i) hook->state.iterations.add({.duration = Nanos{1}, .faults = 1});
  struct stat status{};
  ASSERT_EQ(::stat(made->path().c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 256 << 10) << "of " << sizeof(Session) << " bytes";
}

TEST_F(SessionTest, NobodyCanShrinkItUnderTheSupervisor) { EXPECT_NE(::truncate(made->path().c_str(), 0), 0); }

TEST_F(SessionTest, ASessionOfAnotherVersionIsNotOpened) {
  (*made)->version = kSessionVersion + 1;
  EXPECT_EQ(open_session(), nullptr);
}

TEST(OpenSession, FindsNoneWhereThereIsNone) {
  ::unsetenv(kSessionVariable);
  EXPECT_EQ(open_session(), nullptr);
  ::setenv(kSessionVariable, "/dev/null", 1);
  EXPECT_EQ(open_session(), nullptr);
  ::setenv(kSessionVariable, "/nowhere/at/all", 1);
  EXPECT_EQ(open_session(), nullptr);
  ::unsetenv(kSessionVariable);
}

TEST(SetText, RefusesWhatDoesNotFit) {
  std::array<char, 4> field{};
  EXPECT_TRUE(set_text(field, "abc", "the name"));
  const auto result = set_text(field, "abcd", "the name");
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().message.contains("the name is too long"));
}

}  // namespace
}  // namespace spillway
