#include "hook/preload/forks.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace {

std::atomic<int> pauses{0};  // while somebody waits
std::atomic<bool> time_flies{false};
std::atomic<std::int64_t> skipped_seconds{0};
std::atomic<bool> fork_has_begun{false}, fork_may_go_on{true};

}  // namespace

// Sleep and clock of the waits of forks.cpp.
extern "C" int nanosleep(const timespec* pause, timespec* rest) {
  ++pauses;
  if (time_flies) return ++skipped_seconds, 0;
  return ::clock_nanosleep(CLOCK_REALTIME, 0, pause, rest);
}
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto status = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  now->tv_sec += skipped_seconds;
  return status;
}

namespace spillway {
namespace {

class Forks : public testing::Test {
 protected:
  Forks() {
    static std::once_flag once;
    std::call_once(once, [] {
      const auto before = [] {
        fork_has_begun = true;
        while (!fork_may_go_on) std::this_thread::yield();
      };
      ::pthread_atfork(before, nullptr, nullptr);
    });
    pauses = 0;
    time_flies = false;
    fork_has_begun = false;
    fork_may_go_on = true;
  }
  ~Forks() override { let_forks_go_on(); }

  // Until then, or until somebody waits.
  static void wait_for(const std::atomic<bool>& what) {
    while (!what && pauses == 0) std::this_thread::yield();
  }
  // The child ends with status 1 if it cannot fork at once.
  static void fork_once() {
    const pid_t child = ::fork();
    if (child == 0) {
      pauses = 0;
      fork_may_go_on = true;
      if (::fork() == 0) ::_exit(0);
      ::_exit(pauses == 0 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
};

TEST_F(Forks, OneThatComesWhileTheyAreHeldBeginsWhenTheyGoOn) {
  hold_forks();
  std::thread forks(fork_once);
  wait_for(fork_has_begun);
  EXPECT_FALSE(fork_has_begun);
  let_forks_go_on();
  forks.join();
  EXPECT_TRUE(fork_has_begun);
}

TEST_F(Forks, OneThatHasBegunIsOverWhenTheyAreHeld) {
  fork_may_go_on = false;
  std::thread forks(fork_once);
  while (!fork_has_begun) std::this_thread::yield();
  std::atomic<bool> are_held{false};
  std::thread holds([&] {
    hold_forks();
    are_held = true;
  });
  wait_for(are_held);
  EXPECT_FALSE(are_held);
  fork_may_go_on = true;
  holds.join();
  forks.join();
}

TEST_F(Forks, WhoHoldsThemMayFork) {
  hold_forks();
  fork_once();
  EXPECT_EQ(pauses, 0);
}

TEST_F(Forks, NobodyWaitsForEver) {
  time_flies = true;
  hold_forks();
  std::thread(fork_once).join();
  EXPECT_GT(pauses, 0);
  EXPECT_LE(pauses, 5);  // of a second each
  let_forks_go_on();

  fork_has_begun = false;
  fork_may_go_on = false;
  pauses = 0;
  std::thread forks(fork_once);
  while (!fork_has_begun) std::this_thread::yield();
  hold_forks();
  EXPECT_GT(pauses, 0);
  EXPECT_LE(pauses, 2);
  fork_may_go_on = true;
  forks.join();
}

}  // namespace
}  // namespace spillway
