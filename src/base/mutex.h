#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

// Says which lock guards what. Clang proves it where the sources are linted; other compilers see nothing.
#ifdef __clang__
#define SPILLWAY_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define SPILLWAY_THREAD_SAFETY(attribute)
#endif

// Of a class: it is a lock, or holds one as long as it lives.
#define SPILLWAY_CAPABILITY SPILLWAY_THREAD_SAFETY(capability("mutex"))
#define SPILLWAY_SCOPED_CAPABILITY SPILLWAY_THREAD_SAFETY(scoped_lockable)
// Of a member: it is used with this lock held, or for reading with it shared.
#define SPILLWAY_GUARDED_BY(mutex) SPILLWAY_THREAD_SAFETY(guarded_by(mutex))
// Of a function: its callers hold the locks, or must not hold them since it takes them itself.
#define SPILLWAY_REQUIRES(...) SPILLWAY_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define SPILLWAY_EXCLUDES(...) SPILLWAY_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
// Of a function that returns with a lock taken or released.
#define SPILLWAY_ACQUIRE(...) SPILLWAY_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define SPILLWAY_ACQUIRE_SHARED(...) SPILLWAY_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define SPILLWAY_TRY_ACQUIRE(...) SPILLWAY_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define SPILLWAY_TRY_ACQUIRE_SHARED(...) SPILLWAY_THREAD_SAFETY(try_acquire_shared_capability(__VA_ARGS__))
#define SPILLWAY_RELEASE(...) SPILLWAY_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define SPILLWAY_RELEASE_SHARED(...) SPILLWAY_THREAD_SAFETY(release_shared_capability(__VA_ARGS__))
// Of a function that Clang cannot follow: it says why.
#define SPILLWAY_UNPROVED SPILLWAY_THREAD_SAFETY(no_thread_safety_analysis)

namespace spillway {

// std::mutex, which Clang knows nothing of.
class SPILLWAY_CAPABILITY Mutex {
 public:
  void lock() SPILLWAY_ACQUIRE() { mutex_.lock(); }
  bool try_lock() SPILLWAY_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() SPILLWAY_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

// std::shared_mutex likewise.
class SPILLWAY_CAPABILITY SharedMutex {
 public:
  void lock() SPILLWAY_ACQUIRE() { mutex_.lock(); }
  void unlock() SPILLWAY_RELEASE() { mutex_.unlock(); }
  void lock_shared() SPILLWAY_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() SPILLWAY_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Holds the lock as long as it lives.
template <class M>
class SPILLWAY_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(M& mutex) SPILLWAY_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  ~MutexLock() SPILLWAY_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;

 private:
  M& mutex_;
};

// The same, for reading only.
template <class M>
class SPILLWAY_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(M& mutex) SPILLWAY_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex.lock_shared(); }
  ~SharedLock() SPILLWAY_RELEASE() { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;

 private:
  M& mutex_;
};

// Lets others have a lock that is held, and takes it again.
class SPILLWAY_SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) SPILLWAY_RELEASE(mutex) : mutex_(mutex) { mutex.unlock(); }
  ~MutexUnlock() SPILLWAY_RELEASE() { mutex_.lock(); }  // That gives back what the constructor released.
  MutexUnlock(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

// std::condition_variable of a Mutex. A predicate that reads what the mutex guards says SPILLWAY_REQUIRES itself.
class Condition {
 public:
  template <class Predicate>
  void wait(Mutex& mutex, Predicate is_met) SPILLWAY_REQUIRES(mutex) {
    Adopted held(mutex.mutex_);
    condition_.wait(held.lock, is_met);
  }
  // False: the time is over, and it is not met.
  template <class Predicate>
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds patience, Predicate is_met) SPILLWAY_REQUIRES(mutex) {
    Adopted held(mutex.mutex_);
    return condition_.wait_for(held.lock, patience, is_met);
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  // The caller's, who still holds it afterwards, however the wait ends.
  struct Adopted {
    explicit Adopted(std::mutex& mutex) : lock(mutex, std::adopt_lock) {}
    ~Adopted() { lock.release(); }
    Adopted(const Adopted&) = delete;
    std::unique_lock<std::mutex> lock;
  };
  std::condition_variable condition_;
};

}  // namespace spillway
