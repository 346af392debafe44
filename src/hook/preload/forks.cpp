// A fork while another thread starts Spillway would leave a child with half of it: libraries that are half loaded, and
// none of the handlers that tell it that it is a child, since fork runs those only that were there when it began. (Nor
// is there one moment that a child shows: its pages are copied one after the other, while other threads go on.) An
// atfork handler that waits would come too late, so fork itself does. Children of vfork and posix_spawn are left alone:
// they run other programs.
#include "hook/preload/forks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "hook/preload/bounded_wait.h"
#include "hook/preload/text.h"

namespace spillway {
namespace {

using Fork = pid_t (*)();

std::atomic<pid_t> held_in{0};  // the process: its children have a copy of this
std::atomic<pthread_t> holder{};
std::atomic<int> under_way{0};
// Of this thread: a signal handler may fork within a fork.
[[gnu::tls_model("initial-exec")]] thread_local int under_way_here = 0;

bool may_fork() noexcept {
  return held_in.load() != ::getpid() || ::pthread_equal(holder.load(), ::pthread_self()) != 0;
}

void begin_fork() noexcept {
  for (bool has_waited = false;;) {
    under_way.fetch_add(1);  // Before the look: whoever holds forks looks at this afterwards.
    ++under_way_here;
    if (has_waited || may_fork()) return;
    --under_way_here;
    under_way.fetch_sub(1);
    wait_for(5, may_fork);
    has_waited = true;
  }
}

void end_fork(bool in_child) noexcept {
  --under_way_here;
  if (in_child)
    under_way.store(under_way_here);
  else
    under_way.fetch_sub(1);
}

// What the library after this one has. It is looked up before main: at the first fork somebody could have the loader's
// lock and wait for the child.
std::atomic<Fork> next_fork{nullptr};
[[gnu::constructor]] void look_up() noexcept { next_fork.store(reinterpret_cast<Fork>(::dlsym(RTLD_NEXT, "fork"))); }

Fork original_fork() noexcept {
  if (next_fork.load() == nullptr) look_up();  // Another library's constructor forks.
  if (const Fork function = next_fork.load()) return function;
  write_line("bug: somebody called fork, but no library has it");
  ::_exit(1);
}

}  // namespace

void hold_forks() noexcept {
  holder.store(::pthread_self());
  held_in.store(::getpid());
  wait_for(2, [] { return under_way.load() <= under_way_here; });
}

void let_forks_go_on() noexcept { held_in.store(0); }

}  // namespace spillway

extern "C" __attribute__((visibility("default"))) pid_t fork() noexcept {
  spillway::begin_fork();
  const pid_t child = spillway::original_fork()();
  spillway::end_fork(child == 0);
  return child;
}
