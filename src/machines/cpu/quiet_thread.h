#pragma once

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/result.h"

namespace spillway {

// A thread that takes no signals: those are the script's, and its handlers may touch managed memory.
template <class F>
Result<std::thread> quiet_thread(const char* name, F&& body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int error = 0;
  try {
    thread = std::thread(std::forward<F>(body));
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    return fail(Errc::unavailable, fmt::format("cannot start a thread: {}; raise the limit on processes and threads "
                                               "(ulimit -u, or the container's)",
                                               errno_text(error)));
  ::pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace spillway
