#include "session/disk_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
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
  }
  // Looks each second; when it had enough, or 0.
  std::uint64_t ends_after(std::uint64_t seconds) {
    for (std::uint64_t second = 0; second <= seconds; ++second) {
      at += kSecond;
      if (!watch.overdue(Nanos{at}).empty()) return second;
    }
    return 0;
  }
  bool says(std::string_view text) { return watch.overdue(Nanos{at += kSecond}).find(text) != std::string::npos; }

  SharedSession session = *SharedSession::create();
  DiskWaits& waits = session->state.disk_waits;
  DiskWatch watch{*session};
  std::uint64_t at = 1000 * kSecond;
};

TEST_F(DiskWatchTest, EndsARunWhoseDiskDoesNotAnswer) {
  EXPECT_EQ(ends_after(20), 0u);
  {
    const DiskWait wait(&waits, WaitsFor::block_write);
    EXPECT_EQ(ends_after(20), 5u);
    EXPECT_TRUE(says("has not answered a write of a block for "));
  }
  const DiskWait wait(&waits, WaitsFor::block_read);
  EXPECT_EQ(ends_after(20), 5u);
  EXPECT_TRUE(says("has not answered a read of a block for "));
}

TEST_F(DiskWatchTest, EndsARunThatWaitsForSpaceOrForItsRecord) {
  {
    const DiskWait wait(&waits, WaitsFor::space);
    EXPECT_EQ(ends_after(20), 5u);
    EXPECT_TRUE(says("asked for space"));
  }
  const DiskWait wait(&waits, WaitsFor::record);
  session->config.io_timeout_ns = kSecond;  // Five all the same: what is written is made in that time, too.
  EXPECT_EQ(ends_after(20), 5u);
  EXPECT_TRUE(says("--record"));
}

TEST_F(DiskWatchTest, NamesTheOneThatWaitsLongest) {
  std::optional<DiskWait> before(std::in_place, &waits, WaitsFor::block_write);
  const DiskWait first(&waits, WaitsFor::space);
  before.reset();
  EXPECT_EQ(ends_after(2), 0u);
  const DiskWait second(&waits, WaitsFor::block_read), third(&waits, WaitsFor::block_write);
  EXPECT_EQ(ends_after(20), 2u);
  for (int look = 0; look < 10; ++look) EXPECT_TRUE(says("asked for space"));
}

TEST_F(DiskWatchTest, ALongerLimitOfOneDoesNotHideAnother) {
  session->config.io_timeout_ns = kSecond;
  const DiskWait record(&waits, WaitsFor::record);
  EXPECT_EQ(ends_after(1), 0u);
  const DiskWait space(&waits, WaitsFor::space);
  EXPECT_EQ(ends_after(20), 1u);
  EXPECT_TRUE(says("asked for space"));
}

TEST_F(DiskWatchTest, EndsARunThatHasEndedButForItsJournal) {
  {
    const DiskWait wait(&waits, WaitsFor::journal);
    EXPECT_EQ(ends_after(20), 0u) << "nobody waits for it";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<bool> waiting{false};
    std::thread([&] {
      const DiskWait wait(&waits, WaitsFor::journal);
      waiting = true;
      waiting.notify_all();
      for (;;) ::pause();
    }).detach();
    waiting.wait(false);
    ::syscall(SYS_exit, 0);  // this thread alone
  }
  session->state.owner_pid = child;
  while (state_letter(child) != 'Z') std::this_thread::yield();
  EXPECT_EQ(ends_after(20), 5u);
  EXPECT_TRUE(says("the script has ended"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ends_after(20), 0u);
}

TEST_F(DiskWatchTest, ASlowDiskIsNoDeadOne) {
  for (std::uint64_t since = 1; since < 10; ++since) {
    waits[0] = disk_wait(WaitsFor::block_read, ::gettid(), Nanos{since * 1'000'000});
    EXPECT_EQ(ends_after(4), 0u);
  }
}

TEST_F(DiskWatchTest, ZeroMeansThatItWaitsForEver) {
  session->config.io_timeout_ns = 0;
  const DiskWait wait(&waits, WaitsFor::block_read);
  EXPECT_EQ(ends_after(100), 0u);
}

TEST_F(DiskWatchTest, TimeInWhichScriptOrSupervisorStoodStillDoesNotCount) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    for (;;) ::pause();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  session->state.owner_pid = child;
  waits[0] = disk_wait(WaitsFor::block_read, child, {});
  EXPECT_EQ(ends_after(100), 0u);
  ::kill(child, SIGCONT);
  ASSERT_EQ(::waitpid(child, &status, WCONTINUED), child);
  at += 1000 * kSecond;
  EXPECT_EQ(ends_after(100), 3u);  // The jump counts as two seconds.
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

TEST_F(DiskWatchTest, WhoHasEndedWaitsForNothing) {
  std::jthread([&] {  // In that slot nobody ends it.
    waits[0] = disk_wait(WaitsFor::space, ::gettid(), {});
  })
      .join();
  EXPECT_EQ(ends_after(100), 0u);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  session->state.owner_pid = child;
  waits[0] = disk_wait(WaitsFor::space, child, {});
  EXPECT_EQ(ends_after(100), 0u);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ends_after(100), 0u);
}

TEST_F(DiskWatchTest, WhoRunsAnotherProgramWaitsForNothing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<bool> waiting{false};
    std::thread([&] {
      waits[0] = disk_wait(WaitsFor::block_read, ::gettid(), {});
      waiting = true;
      waiting.notify_all();
      for (;;) ::pause();
    }).detach();
    waiting.wait(false);
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  char none = 0;
  EXPECT_EQ(::read(ends[0], &none, 1), 0) << "it runs that when the pipe is closed";
  ::close(ends[0]);
  session->state.owner_pid = child;
  EXPECT_EQ(ends_after(100), 0u);
  EXPECT_NE(state_letter(child), 'Z');
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace spillway
