// A fork while another thread starts Spillway would leave a child with half of it: libraries that are half loaded, and
// none of the handlers that tell it that it is a child, since fork runs those only that were there when it began. (Nor
// is there one moment that a child shows: its pages are copied one after the other, while other threads go on.) An
// atfork handler that waits would come too late, so fork itself does. Children of vfork and posix_spawn run other
// programs and are not meant.
#include "hook/preload/forks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "hook/preload/text.h"

namespace spillway {
namespace {

using Fork = pid_t (*)();

std::atomic<bool> held{false};
std::atomic<pthread_t> holder{};
std::atomic<int> under_way{0};
thread_local int under_way_here = 0;  // in this thread: a signal handler may fork within a fork

// False if that took too long.
template <typename Condition>
bool wait_until(Condition condition) noexcept {
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

bool may_fork() noexcept { return !held.load() || ::pthread_equal(holder.load(), ::pthread_self()) != 0; }

void begin_fork() noexcept {
  ++under_way_here;
  for (bool has_waited = false;;) {
    under_way.fetch_add(1);  // Before the look: whoever holds forks looks at this afterwards.
    if (has_waited || may_fork()) return;
    under_way.fetch_sub(1);
    has_waited = !wait_until(may_fork);
  }
}

void end_fork(bool in_child) noexcept {
  --under_way_here;
  if (in_child)
    under_way.store(under_way_here);
  else
    under_way.fetch_sub(1);
}

Fork original_fork() noexcept {
  static std::atomic<Fork> known{nullptr};
  if (const Fork function = known.load(std::memory_order_relaxed)) return function;
  const auto function = reinterpret_cast<Fork>(::dlsym(RTLD_NEXT, "fork"));
  if (function == nullptr) {
    write_line("bug: somebody called fork, but no library has it");
    ::_exit(1);
  }
  known.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace

void hold_forks() noexcept {
  holder.store(::pthread_self());
  held.store(true);
  wait_until([] { return under_way.load() <= under_way_here; });
}

void let_forks_go_on() noexcept { held.store(false); }

}  // namespace spillway

extern "C" __attribute__((visibility("default"))) pid_t fork() noexcept {
  spillway::begin_fork();
  const pid_t child = spillway::original_fork()();
  spillway::end_fork(child == 0);
  return child;
}
