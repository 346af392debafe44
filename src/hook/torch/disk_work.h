#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "base/mutex.h"

namespace spillway {

// What may wait for a disk, and must not do so under a lock that others need: it is left here when it has been decided,
// and done in that order, once the lock is released. One thread at a time does it. Another one leaves its own to that
// thread and goes on. Any thread.
class DiskWork {
 public:
  // For a moment only: under any lock.
  void leave(std::function<void()> work) SPILLWAY_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    left_.push_back(std::move(work));
  }
  // All that was left has been done.
  bool is_done() SPILLWAY_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return left_.empty() && !is_busy_;
  }
  // With no lock held. Returns at once where another thread is busy with it, which then does what this one has left.
  void go_on() SPILLWAY_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!is_busy_) do_all();
  }
  // With no lock held. Afterwards all that had been left is done.
  void finish() SPILLWAY_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ended_.wait(mutex_, [&]() SPILLWAY_REQUIRES(mutex_) { return !is_busy_; });
    do_all();
  }

 private:
  void do_all() SPILLWAY_REQUIRES(mutex_) {
    struct Turn {                  // It ends, too, where memory runs out.
      ~Turn() SPILLWAY_UNPROVED {  // do_all() holds the lock, under a name that Clang does not know here.
        work.is_busy_ = false;
        work.ended_.notify_all();
      }
      DiskWork& work;
    };
    is_busy_ = true;
    const Turn turn{*this};
    while (!left_.empty()) {
      std::function<void()> next = std::move(left_.front());
      left_.pop_front();
      const MutexUnlock unlock(mutex_);
      std::exchange(next, nullptr)();
    }
  }

  Mutex mutex_;  // a leaf
  Condition ended_;
  std::deque<std::function<void()>> left_ SPILLWAY_GUARDED_BY(mutex_);
  bool is_busy_ SPILLWAY_GUARDED_BY(mutex_) = false;  // a thread does some of it
};

}  // namespace spillway
