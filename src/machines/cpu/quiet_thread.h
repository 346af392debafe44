#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace spillway {

// A thread that takes no signals: those are the script's, and its handlers may touch managed memory.
template <class F>
std::thread quiet_thread(const char* name, F&& body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<F>(body));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace spillway
