#pragma once

#include <pthread.h>

#include "base/mutex.h"

namespace spillway {

// A shared mutex that lets a writer in before readers who come after it: std::shared_mutex prefers readers, and threads
// that launch all the time would keep who registers memory waiting for ever. Nobody may read twice at a time.
class SPILLWAY_CAPABILITY FairSharedMutex {
 public:
  FairSharedMutex() noexcept {
    pthread_rwlockattr_t attributes;
    ::pthread_rwlockattr_init(&attributes);
    ::pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    ::pthread_rwlock_init(&lock_, &attributes);
    ::pthread_rwlockattr_destroy(&attributes);
  }
  ~FairSharedMutex() { ::pthread_rwlock_destroy(&lock_); }
  FairSharedMutex(const FairSharedMutex&) = delete;
  FairSharedMutex& operator=(const FairSharedMutex&) = delete;

  void lock() noexcept SPILLWAY_ACQUIRE() { ::pthread_rwlock_wrlock(&lock_); }
  void unlock() noexcept SPILLWAY_RELEASE() { ::pthread_rwlock_unlock(&lock_); }
  void lock_shared() noexcept SPILLWAY_ACQUIRE_SHARED() { ::pthread_rwlock_rdlock(&lock_); }
  bool try_lock_shared() noexcept SPILLWAY_TRY_ACQUIRE_SHARED(true) { return ::pthread_rwlock_tryrdlock(&lock_) == 0; }
  void unlock_shared() noexcept SPILLWAY_RELEASE_SHARED() { ::pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

}  // namespace spillway
