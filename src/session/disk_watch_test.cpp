#include "session/disk_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/files.h"
#include "session/shared_session.h"

namespace spillway {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

char state_letter(pid_t process) {
  const auto stat = read_file("/proc/" + std::to_string(process) + "/stat", 4_KiB);
  return stat ? (*stat)[stat->rfind(") ") + 2] : '\0';
}

struct DiskWatchTest : testing::Test {
  DiskWatchTest() {
    session->config.io_timeout_ns = 5 * kSecond;
    session->state.owner_pid = ::getpid();
    ::prctl(PR_SET_NAME, "spillway-loop");
  }
  ~DiskWatchTest() override { ::prctl(PR_SET_NAME, "session_test"); }
  // Looks each second; when it had enough, or 0.
  std::uint64_t ends_after(std::uint64_t seconds) {
    for (std::uint64_t second = 0; second <= seconds; ++second) {
      at += kSecond;
      if (!watch.overdue(Nanos{at}).empty()) return second;
    }
    return 0;
  }
  SharedSession session = *SharedSession::create();
  DiskWatch watch{*session};
  std::uint64_t at = 1000 * kSecond;
};

TEST_F(DiskWatchTest, EndsARunWhoseDiskDoesNotAnswer) {
  EXPECT_EQ(ends_after(20), 0u);
  session->state.oldest_transfer = 7;
  EXPECT_EQ(ends_after(20), 5u);
  EXPECT_NE(watch.overdue(Nanos{at += kSecond}).find("has not answered a write of a block for "), std::string::npos);
}

TEST_F(DiskWatchTest, EndsARunThatWaitsForSpaceOrForItsRecord) {
  session->state.asks_for_space_since = 7;
  EXPECT_EQ(ends_after(20), 5u);
  EXPECT_NE(watch.overdue(Nanos{at += kSecond}).find("asked for space"), std::string::npos);
  session->state.asks_for_space_since = 0;
  session->state.writes_record_since = 7;
  session->config.io_timeout_ns = kSecond;  // Five all the same: what is written is made in that time, too.
  EXPECT_EQ(ends_after(20), 5u);
  EXPECT_NE(watch.overdue(Nanos{at += kSecond}).find("--record"), std::string::npos);
}

// The file for what leaves is made first.
TEST_F(DiskWatchTest, EndsARunThatHasNoLoopYet) {
  ::prctl(PR_SET_NAME, "python3");
  session->state.asks_for_space_since = 7;
  EXPECT_EQ(ends_after(20), 5u);
  session->state.asks_for_space_since = 0;
  session->state.writes_record_since = 7;  // The journal begins then.
  EXPECT_EQ(ends_after(20), 5u);
}

TEST_F(DiskWatchTest, EndsARunThatHasEndedButForItsJournal) {
  session->state.writes_journal_since = 7;
  EXPECT_EQ(ends_after(20), 0u) << "nobody waits for it";
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<bool> named{false};
    std::thread([&] {
      ::prctl(PR_SET_NAME, "spillway-record");
      named = true;
      named.notify_all();
      ::pause();
    }).detach();
    named.wait(false);
    ::syscall(SYS_exit, 0);  // this thread alone
  }
  session->state.owner_pid = child;
  session->state.writes_journal_since = 9;
  while (state_letter(child) != 'Z') std::this_thread::yield();
  EXPECT_EQ(ends_after(20), 5u);
  EXPECT_NE(watch.overdue(Nanos{at += kSecond}).find("the script has ended"), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ends_after(20), 0u);
}

TEST_F(DiskWatchTest, ASlowDiskIsNoDeadOne) {
  for (std::uint64_t transfer = 1; transfer < 10; ++transfer) {
    session->state.oldest_transfer = transfer;
    EXPECT_EQ(ends_after(4), 0u);
  }
}

TEST_F(DiskWatchTest, ZeroMeansThatItWaitsForEver) {
  session->config.io_timeout_ns = 0;
  session->state.oldest_transfer = 8;
  EXPECT_EQ(ends_after(100), 0u);
}

TEST_F(DiskWatchTest, TimeInWhichScriptOrSupervisorStoodStillDoesNotCount) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  session->state.owner_pid = child;
  session->state.oldest_transfer = 8;
  EXPECT_EQ(ends_after(100), 0u);
  session->state.owner_pid = ::getpid();
  at += 1000 * kSecond;
  EXPECT_EQ(ends_after(100), 3u);  // The jump counts as two seconds.
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

TEST_F(DiskWatchTest, WhoHasEndedOrRunsAnotherProgramWaitsForNothing) {
  session->state.oldest_transfer = 8;
  ::prctl(PR_SET_NAME, "another");
  EXPECT_EQ(ends_after(100), 0u);
  session->state.asks_for_space_since = 8;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  session->state.owner_pid = child;
  EXPECT_EQ(ends_after(100), 0u);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ends_after(100), 0u);
}

}  // namespace
}  // namespace spillway
